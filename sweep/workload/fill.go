package workload

import "strings"

// FillWritten makes the spec write, before the sweep, the strings that its SET
// commands write during it, as well as what it reads. It reports whether there
// is anything to write.
func (s *Spec) FillWritten() bool {
	for _, c := range s.Commands {
		if len(c.Args) > 1 && strings.EqualFold(c.Args[0], "SET") && c.Args[1] == keyArg && !s.fills(c.kind()) {
			s.Fill = append(s.Fill, filled(c.Kind)...)
		}
	}
	return len(s.Fill) > 0
}

// fills reports whether keys of a kind are written before the sweep.
func (s *Spec) fills(kind string) bool {
	for _, c := range s.Fill {
		if c.kind() == kind {
			return true
		}
	}
	return false
}

// SharesKeys reports whether the commands of another workload use a single key
// of this one's, as LPOP takes from the list that LPUSH has filled.
func (w *Workload) SharesKeys(other Spec) bool {
	for _, a := range families(w.spec.Commands) {
		for _, b := range families(other.Commands) {
			if a.one && a == b {
				return true
			}
		}
	}
	return false
}
