package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/golden"
)

// usl returns the Universal Scalability Law, X(N) = γN/(1+α(N−1)+βN(N−1)).
func usl(alpha, beta, gamma float64) func(n float64) float64 {
	return func(n float64) float64 { return gamma * n / (1 + alpha*(n-1) + beta*n*(n-1)) }
}

// workers returns the throughput of c workers of fixed service time:
// X = min(N, c)/S.
func workers(c, seconds float64) func(n float64) float64 {
	return func(n float64) float64 { return math.Min(n, c) / seconds }
}

// sweep returns a curve that follows x with trials that scatter by sigma, with
// latencies of Little's law, and its analysis.
func sweep(test string, depth int, x func(float64) float64, sigma float64, clients ...int) (analyze.Curve, *analyze.Analysis) {
	r := rand.New(rand.NewPCG(1, uint64(depth)))
	c := analyze.Curve{Test: test, Depth: depth}
	for _, n := range clients {
		p := analyze.Point{Clients: n}
		for range 3 {
			t := analyze.Trial{QPS: x(float64(n)) * math.Exp(sigma*r.NormFloat64()), Load: analyze.UnknownLoad(), LatencyMin: analyze.Unknown()}
			t.Mean = analyze.Quantity(float64(n*depth) / t.QPS)
			t.P50, t.P99, t.P999 = t.Mean, 2.2*t.Mean, 4*t.Mean
			t.Load.ServerMain = analyze.Quantity(math.Min(1, t.QPS/100_000))
			t.Load.GeneratorCPU = .6 * t.Load.ServerMain
			p.Trials = append(p.Trials, t)
		}
		c.Points = append(c.Points, p)
	}
	return c, analyze.Analyze(c, analyze.Options{})
}

var byTens = []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}

// gallery returns the charts that a reader may meet.
func gallery() map[string][]*Chart {
	g := make(map[string][]*Chart)
	add := func(name string) func(analyze.Curve, *analyze.Analysis) {
		return func(c analyze.Curve, a *analyze.Analysis) { g[name] = Sweep(c, a) }
	}
	add("plateau")(sweep("SET", 1, workers(40, 400e-6), .01, byTens...))
	add("retrograde")(sweep("GET", 1, usl(.03, .0008, 8000), .01, 1, 2, 5, 10, 20, 30, 40, 60, 80, 120))
	add("rising")(sweep("GET", 1, workers(1000, 2e-3), .01, byTens...))
	add("noisy")(sweep("SET", 1, workers(40, 400e-6), .15, byTens...))
	add("doubling")(sweep("GET", 16, usl(.02, 0, 9000), .02, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
	add("one-step")(sweep("GET", 1, workers(4, 1e-3), 0, 10))

	// Another tool's numbers: one trial a step, throughput alone.
	bare := analyze.Curve{Test: "get <&> \"quoted\"", Depth: 1}
	for _, n := range byTens {
		u := analyze.Unknown()
		bare.Points = append(bare.Points, analyze.Point{Clients: n, Trials: []analyze.Trial{{
			QPS: workers(40, 1e-3)(float64(n)), Mean: u, P50: u, P99: u, P999: u, LatencyMin: u, Load: analyze.UnknownLoad(),
		}}})
	}
	g["bare"] = Sweep(bare, analyze.Analyze(bare, analyze.Options{}))

	var depths []*analyze.Analysis
	for _, d := range []int{1, 4, 16} {
		_, a := sweep("GET", d, usl(.02, .0002, 20_000*math.Sqrt(float64(d))), .01, 1, 2, 5, 10, 20, 40, 60)
		depths = append(depths, a)
	}
	_, plain := sweep("GET", 1, workers(40, 400e-6), .01, byTens...)
	g["depths"] = []*Chart{Surface("GET", depths)}
	g["percentiles"] = []*Chart{Percentiles(plain, []Distribution{
		exponential("knee, 40 clients", 300*time.Microsecond, 150_000),
		exponential("peak, 100 clients", 900*time.Microsecond, 40_000),
	})}
	return g
}

// exponential is a distribution with that mean: its quantile is −mean·ln(1−q).
func exponential(name string, mean time.Duration, count int64) Distribution {
	return Distribution{Name: name, Count: count, Quantile: func(q float64) time.Duration {
		return mean/10 + time.Duration(-float64(mean)*math.Log(1-q))
	}}
}

// each runs a test over every chart of the gallery.
func each(t *testing.T, test func(t *testing.T, c *Chart)) {
	for name, charts := range gallery() {
		for _, c := range charts {
			t.Run(name+"/"+c.Name, func(t *testing.T) { test(t, c) })
		}
	}
}

// TestWellFormed: every chart is XML, says what it shows, and has no number
// that is none.
func TestWellFormed(t *testing.T) {
	each(t, func(t *testing.T, c *Chart) {
		var file bytes.Buffer
		if err := c.WriteSVG(&file); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{c.SVG(), file.String()} {
			d := xml.NewDecoder(strings.NewReader(text))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v in\n%s", err, text)
				}
			}
			if bad := regexp.MustCompile(`NaN|Inf|%!`).FindString(text); bad != "" {
				t.Errorf("has %q", bad)
			}
		}
		if c.Title == "" || c.Text == "" {
			t.Errorf("title %q, text %q", c.Title, c.Text)
		}
	})
}

// TestSameBytes: the same curve gives the same bytes, twice from one chart and
// from a chart made anew.
func TestSameBytes(t *testing.T) {
	again := gallery()
	for name, charts := range gallery() {
		for i, c := range charts {
			first := c.SVG()
			if first != c.SVG() || first != again[name][i].SVG() {
				t.Errorf("%s/%s: other bytes the second time", name, c.Name)
			}
		}
	}
}

// TestInside: what is drawn lies within the picture.
func TestInside(t *testing.T) {
	place := regexp.MustCompile(`<text class="\w+" x="([^"]+)" y="([^"]+)" font-size="[^"]+" textLength="([^"]+)" lengthAdjust="spacingAndGlyphs"( transform)?[^>]*>([^<]+)<`)
	path := regexp.MustCompile(`[ML]([-\d.]+) ([-\d.]+)`)
	each(t, func(t *testing.T, c *Chart) {
		inside := func(x, y float64, what string) {
			if x < 0 || x > float64(width) || y < 0 || y > float64(c.height) {
				t.Errorf("%s at (%.1f, %.1f) lies outside of %v × %v", what, x, y, width, c.height)
			}
		}
		text := c.SVG()
		for _, m := range path.FindAllStringSubmatch(text, -1) {
			inside(parse(t, m[1]), parse(t, m[2]), m[0])
		}
		for _, m := range place.FindAllStringSubmatch(text, -1) {
			x, y := parse(t, m[1]), parse(t, m[2])
			inside(x, y, m[5])
			if m[4] == "" {
				inside(x+parse(t, m[3]), y, "end of "+m[5])
			}
		}
	})
}

func parse(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestTrials: every trial has a dot of its own that says its throughput, and
// every step says its values.
func TestTrials(t *testing.T) {
	c, a := sweep("SET", 1, workers(40, 400e-6), .01, byTens...)
	text := Sweep(c, a)[0].SVG()
	for _, p := range c.Points {
		for i, trial := range p.Trials {
			want := fmt.Sprintf("<title>%d clients, trial %d: %s requests/s</title>", p.Clients, i+1, thousands(trial.QPS))
			if strings.Count(text, want) != 1 {
				t.Errorf("%d times %s", strings.Count(text, want), want)
			}
		}
	}
	for _, s := range a.Steps {
		if !strings.Contains(text, "<title>"+stepNote(s)+"</title>") {
			t.Errorf("no note %q", stepNote(s))
		}
	}
}

// TestLandmarks: knee, range, peak and ceiling are in the legend exactly where
// the analysis names them.
func TestLandmarks(t *testing.T) {
	tests := []struct {
		name string
		knee analyze.Knee
		want []string
	}{
		{"none", analyze.Knee{}, nil},
		{"knee alone is the peak too", analyze.Knee{Clients: 40, Low: 40, High: 40, Peak: 40}, []string{"knee and peak 40"}},
		{"all", analyze.Knee{Clients: 40, Low: 30, High: 60, Peak: 70, Ceiling: 90}, []string{"range 30–60", "knee 40", "peak 70", "ceiling 90"}},
		{"peak at the ceiling", analyze.Knee{Clients: 40, Peak: 70, Ceiling: 70}, []string{"knee 40", "peak and ceiling 70"}},
		{"all at one", analyze.Knee{Clients: 40, Peak: 40, Ceiling: 40}, []string{"knee and peak and ceiling 40"}},
		{"no knee named", analyze.Knee{Peak: 110}, []string{"peak 110"}},
	}
	for _, test := range tests {
		_, legend := landmarks(&analyze.Analysis{Knee: test.knee})
		var got []string
		for _, e := range legend {
			got = append(got, e.text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

// TestPNG: a chart is a picture of twice its size with something on it.
func TestPNG(t *testing.T) {
	for _, c := range gallery()["retrograde"] {
		var b bytes.Buffer
		if err := c.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if w, h := img.Bounds().Dx(), img.Bounds().Dy(); w != 920 || h != int(2*c.height) {
			t.Errorf("%s: %d × %d", c.Name, w, h)
		}
		colours := make(map[[3]uint32]bool)
		for x := range img.Bounds().Dx() {
			for y := range img.Bounds().Dy() {
				r, g, b, _ := img.At(x, y).RGBA()
				colours[[3]uint32{r, g, b}] = true
			}
		}
		if len(colours) < 10 {
			t.Errorf("%s: %d colours", c.Name, len(colours))
		}
	}
}

// TestContrast holds what must be read to the contrast that WCAG 2.2 asks for:
// 4.5 for text and, stricter than its 3, for lines. The formula is that of its
// "relative luminance".
func TestContrast(t *testing.T) {
	luminance := func(c uint32) float64 {
		l := 0.0
		for i, weight := range []float64{.2126, .7152, .0722} {
			v := float64(c>>(16-8*i)&0xff) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			l += weight * v
		}
		return l
	}
	contrast := func(a, b uint32) float64 {
		x, y := luminance(a), luminance(b)
		return (math.Max(x, y) + .05) / (math.Min(x, y) + .05)
	}
	for _, i := range inks() {
		if i == inkGrid || i == inkBand {
			continue
		}
		if c := contrast(i.light, 0xffffff); c < 4.5 {
			t.Errorf("%s on white: %.2f", i.class, c)
		}
		if c := contrast(i.dark, 0x16191d); c < 4.5 {
			t.Errorf("%s on dark: %.2f", i.class, c)
		}
	}
}

// TestTicks: marks are round, within the range and rise.
func TestTicks(t *testing.T) {
	tests := []struct {
		log       bool
		low, high float64
		want      string
	}{
		{false, 0, 110, "0 20 40 60 80 100"},
		{false, 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{false, 0, 106_000, "0 20k 40k 60k 80k 100k"},
		{false, 0, 130_000, "0 25k 50k 75k 100k 125k"},
		{true, 1, 512, "1 2 5 10 20 50 100 200 500"},
		{true, 1, 1e6, "1 10 100 1k 10k 100k 1M"},
	}
	for _, test := range tests {
		var got []string
		for _, m := range (ticks{n: 6, log: test.log, format: short}).Ticks(test.low, test.high) {
			got = append(got, m.Label)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("from %v to %v: %s, want %s", test.low, test.high, s, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct {
		print func(float64) string
		x     float64
		want  string
	}{
		{short, 950, "950"}, {short, 1500, "1.5k"}, {short, 120_000, "120k"}, {short, 2e6, "2M"}, {short, 0, "0"}, {short, 999_600, "1000k"}, {short, .25, "0.25"},
		{thousands, 999.6, "1,000"}, {thousands, 1234567, "1,234,567"}, {thousands, 0, "0"},
		{milliseconds, .000_0335, "0.0335"}, {milliseconds, .001, "1"}, {milliseconds, .001_86, "1.86"}, {milliseconds, 1.5, "1500"}, {milliseconds, 0, "0"},
		{asPercentile, 1, "0"}, {asPercentile, 2, "50"}, {asPercentile, 10, "90"}, {asPercentile, 100, "99"}, {asPercentile, 10_000, "99.99"},
	}
	for _, test := range tests {
		if got := test.print(test.x); got != test.want {
			t.Errorf("%v: %s, want %s", test.x, got, test.want)
		}
	}
}

// TestPercentilesHonest: a percentile is shown only when ten values lie beyond
// it, and a line ends at the share of one value.
func TestPercentilesHonest(t *testing.T) {
	d := exponential("knee", time.Millisecond, 10_000)
	shown, _ := d.shown(glyph(inkKnee, 2, diamond{}))
	if last := shown[len(shown)-1].x; last != 1000 {
		t.Errorf("of 10,000 values the last percentile shown is %s, want 99.9", asPercentile(last))
	}
	points := d.points()
	if last := points[len(points)-1]; last.X != 10_000 {
		t.Errorf("the line ends at 1/(1−q) = %v, want 10,000", last.X)
	}
	if c := Percentiles(&analyze.Analysis{}, []Distribution{{}}); c != nil {
		t.Error("a chart without a value")
	}
}

// TestGolden holds the SVG of one sweep to its files, so that a change of what
// is drawn is seen.
func TestGolden(t *testing.T) {
	for _, c := range gallery()["plateau"] {
		var got bytes.Buffer
		if err := c.WriteSVG(&got); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, c.Name+".svg", got.String())
	}
}
