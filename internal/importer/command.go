package importer

import (
	"slices"
	"strings"
)

// command returns the arguments of a line in which one of tools is run, as a
// shell prompt, `set -x` or a comment shows it. A mention of the tool without
// flags counts only behind a prompt.
func command(line string, tools ...string) (args []string, ok bool) {
	fields := strings.Fields(line)
	for i, f := range fields {
		base := strings.TrimLeft(f[strings.LastIndexAny(f, `/\`)+1:], "$+>")
		if !slices.Contains(tools, strings.TrimSuffix(base, ".exe")) {
			continue
		}
		args = fields[i+1:]
		if len(args) > 0 {
			return args, strings.HasPrefix(args[0], "-")
		}
		return nil, i > 0 && strings.ContainsAny(fields[i-1], "$#>%+")
	}
	return nil, false
}

// flagValue returns the value of the last of args with one of the names,
// as "-c 20" or "--clients=20".
func flagValue(args []string, names ...string) (value string, ok bool) {
	for i, a := range args {
		name, v, joined := strings.Cut(a, "=")
		switch {
		case !slices.Contains(names, name):
		case joined:
			value, ok = v, true
		case i+1 < len(args):
			value, ok = args[i+1], true
		}
	}
	return value, ok
}
