package sweep

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// offered returns the jobs with a rate.
func (d *curveDriver) offered() []load.Job {
	return slices.DeleteFunc(slices.Clone(d.jobs), func(j load.Job) bool { return j.Rate == 0 })
}

// withRates makes a short plan that offers rates.
func withRates(text string, slo time.Duration) func(*Config) {
	return func(c *Config) {
		c.Plan.Clients, c.Plan.Fixed, c.Plan.Trials = []int{30, 60, 90}, true, 2
		c.Plan.Rates = Rates{SLOP99: slo, Arrivals: arrivals.Poisson}
		var err error
		if c.Plan.Rates.Offered, err = arrivals.ParseRates(text); err != nil {
			panic(err)
		}
	}
}

// The model is X = min(N, 60)·1000, so that the knee is 60 and X* 60,000, which
// the analysis puts a little lower, as the highest level may be luck.
func TestRatesAreOffered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &curveDriver{qps: hard(60, 1000)}
	res, err := simulate(t, d, func(c *Config) {
		withRates("50%:150%:50%,100", 0)(c)
		c.Journal = j
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := []float64{100, 30_000, 60_000, 90_000}
	seeds := make(map[uint64]bool)
	for i, job := range d.offered() {
		seeds[job.Seed] = true
		// 100/s take 11 s for the 1,100 requests of a p99; 10 s is the longest.
		length := time.Second
		if i%4 == 0 {
			length = longestSlice
		}
		if w := want[i%4]; math.Abs(job.Rate/w-1) > .01 || job.Clients != 60 || job.Duration != length || job.Arrivals != arrivals.Poisson {
			t.Errorf("job %d: %+v, want %v requests/s of 60 clients", i, job, w)
		}
	}
	if len(seeds) != 8 {
		t.Errorf("%d seeds, want another for each of 8 trials", len(seeds))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// decode∘encode = identity; unknown quantities equal nothing, hence as printed.
	read, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if w, r := fmt.Sprintf("%+v", res.RateCurves()), fmt.Sprintf("%+v", read.RateCurves()); w != r {
		t.Errorf("written: %s\nread: %s", w, r)
	}
	a := analyze.AnalyzeRates(read.RateCurves()[0], 0)
	if len(a.Rows) != 4 || a.Rows[1].Achieved != a.Rows[1].Offered || a.Rows[3].Achieved != 60_000 || math.Abs(float64(a.Capacity)/60_000-1) > .01 {
		t.Errorf("concluded: %+v; want 60,000 of 90,000 answered and X* 60,000", a)
	}
}

// A run that was cut short goes on with what is missing.
func TestRatesResume(t *testing.T) {
	whole := &curveDriver{qps: hard(60, 1000)}
	res, err := simulate(t, whole, withRates("50%,100%", 0))
	if err != nil {
		t.Fatal(err)
	}
	res.RateTrials = res.RateTrials[:3]
	rest := &curveDriver{qps: hard(60, 1000)}
	res, err = simulate(t, rest, func(c *Config) {
		withRates("50%,100%", 0)(c)
		c.Resume = res
	})
	if err != nil {
		t.Fatal(err)
	}
	last := whole.offered()[3]
	if jobs := rest.offered(); len(jobs) != 1 || jobs[0].Rate != last.Rate || jobs[0].Seed != last.Seed || len(res.RateTrials) != 4 {
		t.Errorf("went on with %+v, want %+v", jobs, last)
	}
}

// A search without a single p99 tries lower rates and ends. The model records
// no latency.
func TestRatesSearchEnds(t *testing.T) {
	d := &curveDriver{qps: hard(60, 1000)}
	res, err := simulate(t, d, withRates("32000,48000", time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	for _, x := range res.RateTrials {
		rates = append(rates, x.Measurement.Open.Rate)
	}
	// Two trials each, halved down to a 32nd.
	want := []float64{32000, 32000, 16000, 16000, 8000, 8000, 4000, 4000, 2000, 2000, 1000, 1000}
	if !slices.Equal(rates, want) {
		t.Errorf("tried %v, want %v", rates, want)
	}
}

func TestRatesKeepToGuards(t *testing.T) {
	d := &curveDriver{qps: hard(60, 1000)}
	_, err := simulate(t, d, func(c *Config) {
		withRates("10000,70000", 0)(c)
		c.Plan.Guards.MaxRate = 65_000
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range d.offered() {
		if job.Rate > 65_000 || job.Duration > guardSlice {
			t.Errorf("offered %v requests/s for %v", job.Rate, job.Duration)
		}
	}
	if len(d.offered()) == 0 {
		t.Error("nothing was offered")
	}
	// The first that passes a guard is the last.
	d = &curveDriver{qps: func(n int) float64 { return 1000 * float64(n) }}
	res, err := simulate(t, d, func(c *Config) {
		withRates("10000,20000", 0)(c)
		c.Plan.Guards.MaxRate = 95_000
		d.fail = func(job load.Job) error {
			if job.Rate > 0 { // the model then answers more than it may
				d.qps = func(int) float64 { return 96_000 }
			}
			return nil
		}
	})
	if err != nil || len(res.RateTrials) != 1 || res.RateTrials[0].Guard == "" {
		t.Errorf("%v, %d trials; want one, that has passed a guard", err, len(res.RateTrials))
	}
}

func TestRatesThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*Plan){
		"--rate and --vary":  func(p *Plan) { p.Vary = Vary{"save", []string{"a", "b"}} },
		"leave out -k 0":     func(p *Plan) { p.PerRequest = true },
		"unknown arrivals":   func(p *Plan) { p.Rates.Arrivals = "uniform" },
		"a p99 of -1ns":      func(p *Plan) { p.Rates.SLOP99 = -1 },
		"no --rate, no word": nil,
	} {
		c := Config{Plan: DefaultPlan()}
		c.Plan.Workloads = specs("set", 0)
		withRates("50%", 0)(&c)
		if change == nil {
			c.Plan.Rates, c.Plan.PerRequest = Rates{}, true
			if err := c.Plan.Check(); err != nil {
				t.Error(err)
			}
			continue
		}
		change(&c.Plan)
		if err := c.Plan.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

func TestRateTrialsThatAreDamaged(t *testing.T) {
	good := func() RateTrial {
		return RateTrial{Round: 1, Capacity: 1, Measurement: &load.Measurement{
			Step: load.Step{Clients: 1, Depth: 1}, Elapsed: 1, Latency: new(load.Latency), Open: &load.Open{Rate: 1, Slip: new(load.Latency)},
		}}
	}
	if x := good(); x.check() != nil {
		t.Error(x.check())
	}
	for want, change := range map[string]func(*RateTrial){
		"without a measurement": func(x *RateTrial) { x.Measurement = nil },
		"a measurement":         func(x *RateTrial) { x.Measurement.Open = nil },
		"0 clients":             func(x *RateTrial) { x.Measurement.Clients = 0 },
		"round 0":               func(x *RateTrial) { x.Round = 0 },
		"NaN requests/s":        func(x *RateTrial) { x.Measurement.Open.Rate = math.NaN() },
		"of 0,":                 func(x *RateTrial) { x.Capacity = 0 },
	} {
		x := good()
		change(&x)
		if err := x.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// Against the model server: 4 workers with S = 10 ms carry X* = 400/s, so that
// half of it is answered, in 10 ms and a little, and of double of it half.
func TestRatesInRealTime(t *testing.T) {
	m, err := modelserver.Start(modelserver.Model{Workers: 4, Service: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	c := Config{Plan: DefaultPlan(), Server: connect(t, m.Addr), Unobserved: true}
	c.Plan.Workloads = specs("ping_mbulk", 0)
	withRates("200,800", 0)(&c)
	c.Plan.Clients, c.Plan.Trials, c.Plan.Slices, c.Plan.Duration, c.Plan.MinRequests = []int{4}, 1, 1, 400*time.Millisecond, 1
	c.Plan.Rates.Arrivals = arrivals.Constant
	modelserver.Holds(t, func() error {
		res, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		a := analyze.AnalyzeRates(res.RateCurves()[0], 0)
		low, high := a.Rows[0], a.Rows[1]
		if low.Overloaded || !(low.P50 >= .01 && low.P50 < .05) || a.Clients != 4 {
			return fmt.Errorf("200/s on %d clients: %+v, want p50 10 ms", a.Clients, low)
		}
		if !high.Overloaded || high.Achieved > 460 {
			return fmt.Errorf("800/s: %+v, want 400/s answered", high)
		}
		return nil
	})
}
