package importer

import "strings"

func detectSar(head string) bool {
	return strings.Contains(head, "IFACE") && strings.Contains(head, "rxpck/s")
}

// parseSar says why sar's network statistics are no curve: packets a second
// are not requests, one packet may carry many and one request take several.
func parseSar(in *input) {
	in.problem(0, "sar -n DEV counts packets, not requests: there is no throughput in it; "+
		"give the output of the load generator that ran at the time")
}
