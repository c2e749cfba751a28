package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/probe"
)

// latencyOptions are the flags of poolsweep latency.
type latencyOptions struct {
	target targetFlags

	duration, interval, history, intrinsic time.Duration
	format                                 string
}

func latencyCommand() *cobra.Command {
	o := new(latencyOptions)
	c := &cobra.Command{
		Use:   "latency [URL]",
		Short: "Time the round trip to an idle server, and this machine's stalls",
		Long: `Latency sends PING over one connection, waits for the reply, rests, and sends the
next one, as redis-cli --latency does, but timed to the microsecond. It shows what
the network and a server without load take: no pool makes a request faster. Any
server that answers PING will do, a replica or one node of a cluster, too.

--history prints a line for each interval until Ctrl-C, which prints what there is.

--intrinsic watches this machine and not a server: a thread reads the clock without
a rest, and a gap is time that it was not given. No server on a machine answers
faster than the machine's stalls allow, so run it where the server runs. It takes
a whole core. With a server, both are measured, one after the other.`,
		Example: `  poolsweep latency redis://127.0.0.1:6379
  poolsweep latency redis://db:6379 --history 15s
  poolsweep latency --intrinsic 30s`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), c.Flags(), strings.Join(args, ""))
		},
	}
	var groups []flagGroup
	o.target.add(group(&groups, "Target"))
	f := group(&groups, "Latency")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "time to ping for; with --history until Ctrl-C unless given")
	f.DurationVarP(&o.interval, "interval", "i", probe.PingInterval, "rest between a reply and the next PING")
	f.DurationVar(&o.history, "history", 0, "a line for each interval of so long")
	f.DurationVar(&o.intrinsic, "intrinsic", 0, "watch this machine's own stalls for so long")
	f = group(&groups, "Output")
	f.StringVar(&o.format, "format", "table", "of standard output: table, csv, or json (an object a line)")
	useGroups(c, groups)
	return c
}

// check returns the first mistake in the flags. pings says whether there is a
// server.
func (o *latencyOptions) check(f *pflag.FlagSet, pings bool) error {
	for name, d := range map[string]time.Duration{"duration": o.duration, "history": o.history, "intrinsic": o.intrinsic} {
		if f.Changed(name) && d <= 0 {
			return fmt.Errorf("--%s: %v is no time to measure for", name, d)
		}
	}
	switch {
	case o.interval < 0:
		return fmt.Errorf("-i: %v is negative", o.interval)
	case latencyFormats[o.format] == nil:
		return fmt.Errorf("unknown format %q; the formats of latency are csv, json, table", o.format)
	case pings && o.intrinsic > 0 && o.format == "csv":
		return errors.New("--format csv is one table; give a server or --intrinsic, not both")
	case !pings && (f.Changed("history") || f.Changed("duration") || f.Changed("interval")):
		return errors.New("--duration, --history and -i are for a server; --intrinsic has its own time")
	}
	return nil
}

// run is the whole of poolsweep latency.
func (o *latencyOptions) run(ctx context.Context, f *pflag.FlagSet, url string) error {
	target, err := o.target.target(f, url)
	if err != nil {
		return err
	}
	pings := o.intrinsic == 0 || o.target.embedded || url != "" ||
		f.Changed("host") || f.Changed("port") || f.Changed("socket")
	if err := o.check(f, pings); err != nil {
		return usage(err)
	}
	if f.Changed("history") && !f.Changed("duration") {
		o.duration = 0
	}
	out := latencyFormats[o.format](os.Stdout)
	if !pings {
		return printed(out.stalls(probe.Intrinsic(ctx, o.intrinsic)))
	}
	if o.target.embedded {
		e, err := embedded.Start(ctx, "")
		if err != nil {
			return err
		}
		defer e.Close()
		target = e.Target
	}
	// What is wrong with the server is said before the machine is watched.
	p, err := probe.NewPinger(ctx, target)
	if err != nil {
		return err
	}
	defer p.Close()
	if o.intrinsic > 0 {
		if err := out.stalls(probe.Intrinsic(ctx, o.intrinsic)); err != nil {
			return printed(err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return o.ping(ctx, p, out)
}

// ping measures and prints round trips, however that ends.
func (o *latencyOptions) ping(ctx context.Context, p *probe.Pinger, out latencyPrinter) error {
	if err := out.begin(p.Addr()); err != nil {
		return printed(err)
	}
	if o.history == 0 {
		r, err := p.Measure(ctx, o.duration, o.interval)
		return errors.Join(err, printed(out.roundTrips(time.Now(), r)))
	}
	var end time.Time
	if o.duration > 0 {
		end = time.Now().Add(o.duration)
	}
	for ctx.Err() == nil && (end.IsZero() || time.Now().Before(end)) {
		over := o.history
		if !end.IsZero() {
			over = min(over, time.Until(end))
		}
		// Until of an end that is reached just now is not positive, and 0 has
		// no end.
		r, err := p.Measure(ctx, max(over, 1), o.interval)
		if r.Count > 0 {
			err = errors.Join(err, printed(out.roundTrips(time.Now(), r)))
		}
		if err != nil {
			return errors.Join(err, printed(out.end(p.All())))
		}
	}
	return printed(out.end(p.All()))
}

// printed says what an error of the output is.
func printed(err error) error {
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// A latencyPrinter prints lines as they come.
type latencyPrinter interface {
	stalls(probe.Stalls) error
	begin(addr string) error
	roundTrips(at time.Time, r probe.RoundTrips) error
	end(all probe.RoundTrips) error // of a history
}

// latencyFormats are the formats by name.
var latencyFormats = map[string]func(io.Writer) latencyPrinter{
	"table": func(w io.Writer) latencyPrinter { return latencyTable{w} },
	"json":  func(w io.Writer) latencyPrinter { return latencyJSON{json.NewEncoder(w)} },
	"csv":   func(w io.Writer) latencyPrinter { return latencyCSV{csv.NewWriter(w)} },
}

// latencyTable prints what a person reads.
type latencyTable struct{ w io.Writer }

func (t latencyTable) stalls(s probe.Stalls) error {
	w := bufio.NewWriter(t.w)
	fmt.Fprintf(w, "this machine's stalls: one thread, reading the clock for %v\n", s.Elapsed.Round(time.Millisecond))
	const row = "%12s  %9s  %9s  %10s  %10s  %10s  %7s\n"
	fmt.Fprintf(w, row, "readings", "avg µs", "worst ms", ">= 0.1 ms", ">= 1 ms", ">= 10 ms", "lost %")
	fmt.Fprintf(w, row, strconv.FormatInt(s.Readings, 10), decimal(float64(s.Mean())/1e3, 3), inMilliseconds(s.Worst),
		strconv.FormatInt(s.Over100us, 10), strconv.FormatInt(s.Over1ms, 10), strconv.FormatInt(s.Over10ms, 10),
		lostPercent(s))
	return w.Flush()
}

// lostPercent returns the share of the time that stalls took, "-" without any
// time.
func lostPercent(s probe.Stalls) string {
	if s.Elapsed <= 0 {
		return "-"
	}
	return decimal(100*s.Lost.Seconds()/s.Elapsed.Seconds(), 3)
}

const latencyRow = "%-8s  %8s  %9s  %9s  %9s  %9s  %9s\n"

func (t latencyTable) begin(addr string) error {
	_, err := fmt.Fprintf(t.w, "round trips of PING to %s, one connection\n"+latencyRow,
		addr, "time", "count", "min ms", "avg ms", "p50 ms", "p99 ms", "max ms")
	return err
}

func (t latencyTable) roundTrips(at time.Time, r probe.RoundTrips) error {
	return t.line(at.Format(time.TimeOnly), r)
}

func (t latencyTable) end(all probe.RoundTrips) error { return t.line("all", all) }

func (t latencyTable) line(title string, r probe.RoundTrips) error {
	times := []any{title, strconv.FormatInt(r.Count, 10)}
	for _, d := range []time.Duration{r.Min, r.Mean, r.P50, r.P99, r.Max} {
		text := "-"
		if r.Count > 0 {
			text = inMilliseconds(d)
		}
		times = append(times, text)
	}
	_, err := fmt.Fprintf(t.w, latencyRow, times...)
	return err
}

// latencyJSON prints an object a line, with one member that says what it is.
type latencyJSON struct{ e *json.Encoder }

func (j latencyJSON) stalls(s probe.Stalls) error {
	return j.e.Encode(map[string]probe.Stalls{"intrinsic": s})
}

func (latencyJSON) begin(string) error { return nil }

// timedRoundTrips are round trips and when their measurement ended.
type timedRoundTrips struct {
	At time.Time `json:"at"`
	probe.RoundTrips
}

func (j latencyJSON) roundTrips(at time.Time, r probe.RoundTrips) error {
	return j.e.Encode(map[string]timedRoundTrips{"round_trips": {at, r}})
}

func (j latencyJSON) end(all probe.RoundTrips) error {
	return j.e.Encode(map[string]probe.RoundTrips{"all": all})
}

// latencyCSV prints a row for each interval. What is not known is empty.
type latencyCSV struct{ c *csv.Writer }

func (l latencyCSV) write(fields ...string) error {
	if err := l.c.Write(fields); err != nil {
		return err
	}
	l.c.Flush()
	return l.c.Error()
}

func (l latencyCSV) stalls(s probe.Stalls) error {
	if err := l.write("elapsed_ms", "readings", "mean_ms", "worst_ms", "over_100us", "over_1ms", "over_10ms", "lost_ms"); err != nil {
		return err
	}
	return l.write(exactMilliseconds(s.Elapsed), strconv.FormatInt(s.Readings, 10), exactMilliseconds(s.Mean()), exactMilliseconds(s.Worst),
		strconv.FormatInt(s.Over100us, 10), strconv.FormatInt(s.Over1ms, 10), strconv.FormatInt(s.Over10ms, 10), exactMilliseconds(s.Lost))
}

func (l latencyCSV) begin(string) error {
	return l.write("at", "elapsed_ms", "count", "min_ms", "mean_ms", "p50_ms", "p99_ms", "max_ms")
}

func (l latencyCSV) roundTrips(at time.Time, r probe.RoundTrips) error {
	row := []string{at.Format(time.RFC3339Nano), exactMilliseconds(r.Elapsed), strconv.FormatInt(r.Count, 10)}
	for _, d := range []time.Duration{r.Min, r.Mean, r.P50, r.P99, r.Max} {
		text := ""
		if r.Count > 0 {
			text = exactMilliseconds(d)
		}
		row = append(row, text)
	}
	return l.write(row...)
}

func (latencyCSV) end(probe.RoundTrips) error { return nil } // a row of another kind has no place here

func decimal(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

func inMilliseconds(d time.Duration) string { return decimal(float64(d)/1e6, 3) }

// exactMilliseconds loses no nanosecond.
func exactMilliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64)
}
