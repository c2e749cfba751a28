package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/sweep"
)

// A Difference is something beside the numbers that was not the same in both
// runs. What the result file does not hold, because it is not told or not set,
// is an empty string.
type Difference struct {
	// Field is where it is in the header of the result file, and Name what
	// it is called in print.
	Field string `json:"field"`
	Name  string `json:"name"`

	Old string `json:"old"`
	New string `json:"new"`
}

// names are what fields are called where the path in the file would not be
// understood. Of a longer path that begins with one of them, that part is
// replaced.
var names = []struct{ field, name string }{
	{"server.kind", "server"},
	{"server.version", "version"},
	{"server.mode", "mode"},
	{"server.local", "server on the generator's machine"},
	{"server.maxmemory_policy", "maxmemory-policy"},
	{"server.io_threads", "io-threads"},
	{"server.", ""},
	{"host.", "generator's "},
	{"plan.threads", "event loops"},
	{"plan.trials", "trials a step"},
	{"plan.slices", "slices a trial"},
	{"plan.duration", "time of a trial"},
	{"plan.requests", "requests a trial"},
	{"plan.order", "order of the steps"},
	{"plan.idle", "idle connections"},
	{"plan.workloads.", ""},
	{"plan.", ""},
	{"build", "poolsweep"},
}

// passing are fields that differ between any two runs, or that say only which
// steps were taken. A name without a dot is that of a field anywhere.
var passing = []string{
	"schema", "started", "key_prefix", "limit", "limit_clients",
	"run_id", "process_id", "connected_clients", "commands_per_second", "used_memory_bytes", "missing",
	"plan.depths", "plan.clients", "plan.fixed", "plan.auto", "plan.max_clients", "plan.min_requests",
	"plan.budget_ns", "plan.tolerance_ratio",
	"seed", "prefix",
}

// differences compares all that headers say, by their form in the result file:
// so a field that is added there is compared without being named here. It
// returns nothing when one of them is missing.
func differences(old, new *sweep.Header) []Difference {
	if old == nil || new == nil {
		return nil
	}
	a, b := fields(old), fields(new)
	if old.Embedded != "" && new.Embedded != "" {
		// Each has a free port of its own.
		delete(a, "target")
		delete(b, "target")
	}
	if a["server.appendonly"] != "yes" && b["server.appendonly"] != "yes" {
		// Without the append-only file it has no effect.
		delete(a, "server.appendfsync")
		delete(b, "server.appendfsync")
	}
	oneOnly := func(field string) bool { return !hasWorkload(a, field) || !hasWorkload(b, field) }
	all := maps.Clone(a)
	maps.Copy(all, b)
	var ds []Difference
	for _, field := range slices.SortedFunc(maps.Keys(all), byImportance) {
		if a[field] != b[field] && !oneOnly(field) {
			ds = append(ds, Difference{field, nameOf(field), a[field], b[field]})
		}
	}
	return ds
}

// hasWorkload reports whether a run sent the workload that the field belongs
// to; true for all other fields. What only one run sent is not compared.
func hasWorkload(fields map[string]string, field string) bool {
	const workloads = "plan.workloads."
	rest, ok := strings.CutPrefix(field, workloads)
	if !ok {
		return true
	}
	name, _, _ := strings.Cut(rest, ".")
	return fields[workloads+name+".name"] != ""
}

// byImportance puts the server first, then where it and the generator run, then
// what was asked of them.
func byImportance(x, y string) int {
	rank := func(field string) int {
		return slices.IndexFunc([]string{"server.kind", "server.version", "server.", "embedded", "target", "host.", "plan.workloads", "plan.", ""},
			func(prefix string) bool { return strings.HasPrefix(field, prefix) })
	}
	if d := rank(x) - rank(y); d != 0 {
		return d
	}
	return strings.Compare(x, y)
}

// nameOf returns what a field is called in print.
func nameOf(field string) string {
	name := field
	for _, n := range names {
		if rest, ok := strings.CutPrefix(field, n.field); ok {
			name = n.name + rest
			break
		}
	}
	for _, unit := range []string{"_ns", "_bytes"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(name)
}

// fields returns the leaves of a header by their path, as text; without those
// that differ in passing.
func fields(h *sweep.Header) map[string]string {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // it came from a file
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		panic(err)
	}
	all := make(map[string]string)
	flatten(all, "", root)
	return all
}

// flatten adds the leaves below a value to all.
func flatten(all map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			flatten(all, join(path, key, child), child)
		}
	case []any:
		for i, child := range v {
			flatten(all, join(path, fmt.Sprint(i+1), child), child)
		}
	default:
		key := path[strings.LastIndex(path, ".")+1:]
		if text := print(key, value); text != "" && !isPassing(path) {
			all[path] = text
		}
	}
}

// join returns the path of a child. Of a list of things that have a name, as
// workloads and commands, that stands for the number.
func join(path, key string, child any) string {
	if object, ok := child.(map[string]any); ok {
		if name, ok := object["name"].(string); ok && name != "" {
			key = name
		}
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func isPassing(path string) bool {
	for _, p := range passing {
		if path == p || strings.HasPrefix(path, p+".") || !strings.Contains(p, ".") && strings.HasSuffix(path, "."+p) {
			return true
		}
	}
	return false
}

// print returns a value as text, in the unit that the name of its field ends
// in; "" for what counts as not set.
func print(key string, value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		switch {
		case strings.HasSuffix(key, "_ns"):
			return time.Duration(v).String()
		case strings.HasSuffix(key, "_bytes"):
			return fmt.Sprintf("%.0f bytes", v)
		}
		return fmt.Sprintf("%v", v)
	}
	return fmt.Sprint(value)
}
