package report

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// repeatCommand returns the command that measures the same again, as far as a
// result file tells it, and in a sentence each what it does not tell. Flags
// that have their default are left out, but for the event loops, whose default
// is another one on another machine. A refinement is decided anew.
func repeatCommand(h *sweep.Header) (command string, missing []string) {
	args := []string{"poolsweep", "run"}
	if h.Embedded != "" {
		args = append(args, "--embedded")
	} else {
		args = append(args, h.Target)
		missing = append(missing, "The password, if there is one, comes from REDISCLI_AUTH or --password-file.")
		if strings.HasPrefix(h.Target, "rediss:") {
			missing = append(missing, "Files of certificates (--cacert, --cert, --key) are not in the result file.")
		}
	}
	sent, custom, untold := workloadArgs(h.Plan.Workloads)
	args = append(args, sent...)
	args = append(args, planArgs(h.Plan)...)
	if h.RESP3 {
		args = append(args, "-3")
	}
	if h.Tracking {
		args = append(args, "--enable-tracking")
	}
	if len(custom) > 0 {
		args = append(append(args, "--"), custom...)
	}
	for i, a := range args {
		args[i] = quoted(a)
	}
	return strings.Join(args, " "), append(missing, untold...)
}

// workloadArgs returns the flags that choose what is sent, and what stands
// behind -- when that is a command of the user's own.
func workloadArgs(all []workload.Spec) (args, custom, missing []string) {
	if len(all) == 0 {
		return nil, nil, []string{"What was sent is not in the result file."}
	}
	first := all[0]
	// The workload that the flags give without those of keys and values.
	plain := first
	if names := testNames(all); names != nil {
		args = append(args, "-t", strings.Join(names, ","))
		specs, _ := workload.Tests(names[0])
		plain = specs[0]
	} else {
		args, custom, plain, missing = oneWorkload(first)
	}
	if first.Keys.Space > 1 && first.Keys.Space != plain.Keys.Space {
		args = append(args, "-r", strconv.Itoa(first.Keys.Space))
	}
	keys := first.Keys
	keys.Space, plain.Keys.Space = 0, 0
	if s := keys.String(); s != plain.Keys.String() {
		args = append(args, "--keys", s)
	}
	standard := plain.Values.Sizes
	if len(standard) == 0 {
		standard = []workload.Size{{Min: 3, Max: 3}}
	}
	if !reflect.DeepEqual(first.Values.Sizes, standard) {
		args = append(args, "-d", sizesFlag(first.Values.Sizes))
	}
	if c := first.Values.Content; c != "" && c != workload.Same {
		args = append(args, "--content", string(c))
	}
	if first.Expiry != (workload.Expiry{}) {
		args = append(args, "--expiry", first.Expiry.String())
	}
	switch {
	case len(first.Fill) > 0 && len(plain.Fill) == 0:
		args = append(args, "--load=yes")
	case len(first.Fill) == 0 && len(plain.Fill) > 0:
		args = append(args, "--load=no")
	}
	return args, custom, missing
}

// testNames returns the names for -t; nil when the workloads are not all tests.
func testNames(all []workload.Spec) []string {
	titles := make(map[string]string)
	for _, name := range workload.Names() {
		if specs, err := workload.Tests(name); err == nil {
			titles[specs[0].Name] = name
		}
	}
	var names []string
	for _, s := range all {
		name, ok := titles[s.Name]
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// oneWorkload returns the flag of a workload that is no test, and the workload
// that the flag alone would give.
func oneWorkload(s workload.Spec) (args, custom []string, plain workload.Spec, missing []string) {
	if s.Replay != nil {
		return []string{"--replay", "FILE"}, nil, s, []string{"FILE is the recording; it is not in the result file."}
	}
	if ratio, ok := strings.CutPrefix(s.Name, "SET:GET "); ok {
		if plain, err := workload.Ratio(ratio); err == nil {
			return []string{"--ratio", ratio}, nil, plain, nil
		}
	}
	if name, ok := strings.CutPrefix(s.Name, "YCSB-"); ok {
		if plain, err := workload.YCSB(name); err == nil {
			return []string{"--ycsb", strings.ToLower(name)}, nil, plain, nil
		}
	}
	if plain, err := workload.Mix(s.Name); err == nil {
		return []string{"--mix", s.Name}, nil, plain, nil
	}
	if len(s.Commands) == 1 {
		custom = s.Commands[0].Args
		if slices.ContainsFunc(custom, func(a string) bool { return strings.Contains(a, "__sha__") }) {
			missing = append(missing, "The script (--script) is not in the result file.")
		}
		plain, _ = workload.Custom(custom)
		return nil, custom, plain, missing
	}
	return nil, nil, s, []string{fmt.Sprintf("How to send %s is not in the result file.", s.Name)}
}

// sizesFlag writes sizes as -d takes them.
func sizesFlag(sizes []workload.Size) string {
	parts := make([]string, len(sizes))
	for i, z := range sizes {
		parts[i] = strconv.Itoa(z.Min)
		if z.Max != z.Min {
			parts[i] += "-" + strconv.Itoa(z.Max)
		}
		if z.Weight != 0 {
			parts[i] += ":" + strconv.FormatFloat(z.Weight, 'g', -1, 64)
		}
	}
	return strings.Join(parts, ",")
}

// planArgs returns the flags of the sweep.
func planArgs(p sweep.Plan) []string {
	d := sweep.DefaultPlan()
	var args []string
	number := func(flag string, value, standard int64) {
		if value != standard {
			args = append(args, flag, strconv.FormatInt(value, 10))
		}
	}
	length := func(flag string, value, standard time.Duration) {
		if value != standard {
			args = append(args, flag, value.String())
		}
	}
	clients := levelsFlag(p.Clients)
	if p.Auto {
		clients = "auto"
	}
	if p.Auto || !slices.Equal(p.Clients, d.Clients) {
		args = append(args, "-c", clients)
	}
	if !slices.Equal(p.Depths, d.Depths) {
		args = append(args, "-P", levelsFlag(p.Depths))
	}
	number("--trials", int64(p.Trials), int64(d.Trials))
	if p.Requests > 0 {
		number("-n", p.Requests, 0)
	} else {
		length("--duration", p.Duration, d.Duration)
	}
	number("--slices", int64(p.Slices), int64(d.Slices))
	number("--min-requests", p.MinRequests, d.MinRequests)
	length("--warmup", p.Warmup, d.Warmup)
	if p.Order != d.Order {
		args = append(args, "--order", string(p.Order))
	}
	if p.Seed != d.Seed {
		args = append(args, "--seed", strconv.FormatUint(p.Seed, 10))
	}
	number("--max-clients", int64(p.MaxClients), int64(d.MaxClients))
	if p.Fixed {
		args = append(args, "--fixed")
	}
	length("--budget", p.Budget, d.Budget)
	if p.Tolerance != d.Tolerance {
		args = append(args, "--tolerance", strconv.FormatFloat(p.Tolerance, 'g', -1, 64))
	}
	if r := p.Rates; len(r.Offered) > 0 {
		args = append(args, "--rate", ratesFlag(r.Offered))
		length("--slo-p99", r.SLOP99, 0)
		if r.Arrivals != arrivals.Poisson {
			args = append(args, "--arrivals", string(r.Arrivals))
		}
	}
	if p.Vary.Setting != "" {
		args = append(args, "--vary", p.Vary.Setting+"="+strings.Join(p.Vary.Values, ","))
	}
	share := func(flag string, value float64, unit string) {
		if value > 0 {
			args = append(args, flag, strconv.FormatFloat(value, 'g', 9, 64)+unit)
		}
	}
	share("--max-rate", p.Guards.MaxRate, "")
	share("--max-server-cpu", 100*p.Guards.MaxServerCPU, "%")
	length("--max-p99", p.Guards.MaxP99, 0)
	number("-I", int64(p.Idle), 0)
	if p.PerRequest {
		args = append(args, "-k", "0")
	}
	number("--threads", int64(p.Threads), 0)
	return args
}

// ratesFlag writes rates as --rate takes them.
func ratesFlag(all []arrivals.Rate) string {
	var parts []string
	for _, r := range all {
		if r.QPS > 0 {
			parts = append(parts, strconv.FormatFloat(r.QPS, 'g', -1, 64))
			continue
		}
		// Nine digits: .6 has become .6000000000000001 in a range.
		parts = append(parts, strconv.FormatFloat(100*r.Share, 'g', 9, 64)+"%")
	}
	return strings.Join(parts, ",")
}

// levelsFlag writes levels as -c and -P take them: three or more with one
// distance between them as a range.
func levelsFlag(levels []int) string {
	var parts []string
	for i := 0; i < len(levels); {
		j := i + 1
		for j < len(levels) && levels[j]-levels[j-1] == levels[min(i+1, len(levels)-1)]-levels[i] {
			j++
		}
		if j-i >= 3 {
			parts = append(parts, fmt.Sprintf("%d:%d:%d", levels[i], levels[j-1], levels[i+1]-levels[i]))
			i = j
			continue
		}
		parts = append(parts, strconv.Itoa(levels[i]))
		i++
	}
	return strings.Join(parts, ",")
}

// quoted returns an argument as a POSIX shell takes it.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
