package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/probe"
)

// monitorOptions are the flags of poolsweep monitor.
type monitorOptions struct {
	target targetFlags

	interval time.Duration
	count    int
	format   string
}

func monitorCommand() *cobra.Command {
	o := new(monitorOptions)
	c := &cobra.Command{
		Use:   "monitor [URL]",
		Short: "Print a line a second of what a server does",
		Long: `Monitor prints a line a second of what a server does, until Ctrl-C. A line
costs the server one INFO. The server may be a replica; of a cluster it is
the node that is given.

Server is the CPU of its process, main that of the thread that runs commands, in
percent of one core; wait is the time for which that thread was ready, but had no
core. Host is the CPU of all cores of the server's machine: user, system, soft
interrupts (mostly the network's work) and steal, which is what the hypervisor
took. kB in and out are the server's; packets are those of the network interface
that leads to it, of everybody. Disk says what ran in the interval: rdb (a save),
aof (a rewrite), late (a write waited for an fsync), or no.

Wait, host and packets are known on the server's machine only. What is not known
is "-", empty in CSV and null in JSON.`,
		Example: `  poolsweep monitor redis://127.0.0.1:6379
  poolsweep monitor -h db --interval 10s --format csv > day.csv
  poolsweep monitor -s /run/redis.sock --count 60 --format json`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), c.Flags(), strings.Join(args, ""))
		},
	}
	var groups []flagGroup
	o.target.add(group(&groups, "Target"))
	f := group(&groups, "Monitor")
	f.DurationVar(&o.interval, "interval", time.Second, "time that a line is about")
	f.IntVar(&o.count, "count", 0, "lines to print (0: until Ctrl-C)")
	f = group(&groups, "Output")
	f.StringVar(&o.format, "format", "table", "of standard output: table, csv, or json (an object a line)")
	useGroups(c, groups)
	return c
}

// shortestInterval keeps the cost of a line small beside what it is about.
const shortestInterval = 10 * time.Millisecond

// run is the whole of poolsweep monitor.
func (o *monitorOptions) run(ctx context.Context, f *pflag.FlagSet, url string) error {
	target, err := o.target.target(f, url)
	if err != nil {
		return err
	}
	var write func(*probe.Activity) error
	switch o.format {
	case "table":
		write = monitorTable(os.Stdout, term.IsTerminal(int(os.Stdout.Fd())), o.interval)
	case "csv":
		write = monitorCSV(os.Stdout)
	case "json":
		write = func(a *probe.Activity) error { return json.NewEncoder(os.Stdout).Encode(a) }
	default:
		return usage(fmt.Errorf("unknown format %q; the formats of monitor are csv, json, table", o.format))
	}
	switch {
	case o.interval < shortestInterval:
		return usage(fmt.Errorf("--interval: %v is too short; give %v or more", o.interval, shortestInterval))
	case o.count < 0:
		return usage(fmt.Errorf("--count: %d is negative", o.count))
	}
	if o.target.embedded {
		e, err := embedded.Start(ctx, "")
		if err != nil {
			return err
		}
		defer e.Close()
		target = e.Target
	}
	m, err := probe.NewMonitor(ctx, target)
	if err != nil {
		return err
	}
	defer m.Close()
	if !m.Local() {
		fmt.Fprintln(os.Stderr, "poolsweep: the server is not on this machine: its host's CPU and packets are not known")
	}
	return o.watch(ctx, m, write)
}

// watch prints a line for each interval. A server that has gone away may come
// back: why it does not answer is said once, and the lines go on.
func (o *monitorOptions) watch(ctx context.Context, m *probe.Monitor, write func(*probe.Activity) error) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	said := ""
	for line := 1; o.count == 0 || line <= o.count; line++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		a, err := m.Next(ctx)
		if ctx.Err() != nil {
			return nil // the line would lack what the server says
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != "" && text != said {
			fmt.Fprintf(os.Stderr, "poolsweep: %s\n", text)
		}
		said = text
		if err := write(&a); err != nil {
			return printed(err)
		}
	}
	return nil
}

// A monitorColumn is a column of the table. Columns of the same group stand
// side by side.
type monitorColumn struct {
	group, title string
	width        int
	cell         func(*probe.Activity) string // "-" when it is not known
}

var monitorColumns = []monitorColumn{
	{"server %", "user", 5, func(a *probe.Activity) string { return scaled(a.ServerUser, 100, 0) }},
	{"server %", "sys", 4, func(a *probe.Activity) string { return scaled(a.ServerSystem, 100, 0) }},
	{"main %", "user", 5, func(a *probe.Activity) string { return scaled(a.MainUser, 100, 0) }},
	{"main %", "sys", 4, func(a *probe.Activity) string { return scaled(a.MainSystem, 100, 0) }},
	{"main %", "wait", 4, func(a *probe.Activity) string { return scaled(a.MainWait, 100, 0) }},
	{"host %", "us", 4, func(a *probe.Activity) string { return scaled(a.HostUser, 100, 0) }},
	{"host %", "sy", 3, func(a *probe.Activity) string { return scaled(a.HostSystem, 100, 0) }},
	{"host %", "si", 3, func(a *probe.Activity) string { return scaled(a.HostSoftirq, 100, 0) }},
	{"host %", "st", 3, func(a *probe.Activity) string { return scaled(a.HostSteal, 100, 0) }},
	{"clients", "all", 6, func(a *probe.Activity) string { return whole(a.Clients) }},
	{"clients", "blkd", 5, func(a *probe.Activity) string { return whole(a.BlockedClients) }},
	{"memory MB", "used", 8, func(a *probe.Activity) string { return megabytes(a.UsedMemoryBytes) }},
	{"memory MB", "rss", 8, func(a *probe.Activity) string { return megabytes(a.RSSBytes) }},
	{"keys", "all", 9, func(a *probe.Activity) string { return whole(a.Keys) }},
	{"keys", "exp/s", 7, func(a *probe.Activity) string { return rate(a.Expired) }},
	{"keys", "evict/s", 8, func(a *probe.Activity) string { return rate(a.Evicted) }},
	{"commands", "/s", 9, func(a *probe.Activity) string { return rate(a.Commands) }},
	{"commands", "hit %", 6, func(a *probe.Activity) string { return scaled(a.HitRatio, 100, 1) }},
	{"kB/s", "in", 8, func(a *probe.Activity) string { return scaled(a.BytesReceived, 1e-3, 0) }},
	{"kB/s", "out", 8, func(a *probe.Activity) string { return scaled(a.BytesSent, 1e-3, 0) }},
	{"packets/s", "in", 8, func(a *probe.Activity) string { return rate(a.InterfacePacketsReceived) }},
	{"packets/s", "out", 8, func(a *probe.Activity) string { return rate(a.InterfacePacketsSent) }},
	{"disk", "", 12, disk},
}

// headerEvery is how many lines stand below a header on a terminal.
const headerEvery = 20

// monitorTable writes what a person reads, with the header again from time to
// time on a terminal.
func monitorTable(w io.Writer, terminal bool, interval time.Duration) func(*probe.Activity) error {
	clock := time.TimeOnly
	if interval%time.Second != 0 {
		clock = "15:04:05.000"
	}
	lines := 0
	return func(a *probe.Activity) error {
		var text strings.Builder
		if lines == 0 || terminal && lines%headerEvery == 0 {
			monitorHeader(&text, len(clock))
		}
		lines++
		text.WriteString(a.At.Format(clock))
		for _, c := range monitorColumns {
			fmt.Fprintf(&text, " %*s", c.width, c.cell(a))
		}
		_, err := fmt.Fprintln(w, text.String())
		return err
	}
}

// monitorHeader writes the groups, each over its columns, and the titles.
func monitorHeader(text *strings.Builder, clock int) {
	groups, titles := strings.Repeat(" ", clock), fmt.Sprintf("%-*s", clock, "time")
	width := 0
	for i, c := range monitorColumns {
		titles += fmt.Sprintf(" %*s", c.width, c.title)
		width += 1 + c.width
		if i+1 < len(monitorColumns) && monitorColumns[i+1].group == c.group {
			continue
		}
		// A space, then the name between dashes.
		dashes := max(0, width-1-len(c.group))
		groups += " " + strings.Repeat("-", dashes/2) + c.group + strings.Repeat("-", dashes-dashes/2)
		width = 0
	}
	fmt.Fprintln(text, groups)
	fmt.Fprintln(text, strings.TrimRight(titles, " "))
}

func scaled(x *float64, unit float64, decimals int) string {
	if x == nil {
		return "-"
	}
	return decimal(*x*unit, decimals)
}

// rate prints a number a second: what happens rarely must not look like never.
func rate(x *float64) string {
	if x != nil && *x > 0 && *x < 10 {
		return scaled(x, 1, 1)
	}
	return scaled(x, 1, 0)
}

func whole(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func megabytes(n *int64) string {
	if n == nil {
		return "-"
	}
	return decimal(float64(*n)/1e6, 1)
}

// disk says what persistence did: "no" is nothing.
func disk(a *probe.Activity) string {
	if a.Saving == nil && a.Rewriting == nil && a.DelayedFsyncs == nil {
		return "-"
	}
	var does []string
	if a.Saving != nil && *a.Saving {
		does = append(does, "rdb")
	}
	if a.Rewriting != nil && *a.Rewriting {
		does = append(does, "aof")
	}
	if a.DelayedFsyncs != nil && *a.DelayedFsyncs > 0 {
		does = append(does, "late")
	}
	if len(does) == 0 {
		return "no"
	}
	return strings.Join(does, ",")
}

// monitorCSV writes a row for each line, below a header. Names and values are
// those of JSON, but null is empty.
func monitorCSV(w io.Writer) func(*probe.Activity) error {
	c := csv.NewWriter(w)
	begun := false
	return func(a *probe.Activity) error {
		var names, row []string
		v := reflect.ValueOf(*a)
		for i := range v.NumField() {
			text, err := json.Marshal(v.Field(i).Interface())
			if err != nil {
				return err
			}
			names = append(names, v.Type().Field(i).Tag.Get("json"))
			row = append(row, strings.Trim(strings.TrimPrefix(string(text), "null"), `"`))
		}
		if !begun {
			begun = true
			if err := c.Write(names); err != nil {
				return err
			}
		}
		if err := c.Write(row); err != nil {
			return err
		}
		c.Flush() // a line is of use at once
		return c.Error()
	}
}
