package workload

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []Size
	}{
		{"100", []Size{{100, 100, 0}}},
		{"32-512", []Size{{32, 512, 0}}},
		{"32:70,1024-2048:30", []Size{{32, 32, 70}, {1024, 2048, 30}}},
		{" 3, 4 ", []Size{{3, 3, 0}, {4, 4, 0}}},
		{"536870912", []Size{{512 << 20, 512 << 20, 0}}}, // proto-max-bulk-len
		{"", nil}, {"0", nil}, {"-1", nil}, {"5-", nil}, {"-5", nil}, {"9-5", nil}, {"3:0", nil}, {"3:-1", nil},
		{"3:NaN", nil}, {"3:Inf", nil}, {"3:", nil}, {"3,", nil}, {"1e3", nil}, {"536870913", nil}, {"3:1:2", nil},
	} {
		got, err := ParseSizes(tt.in)
		if (err == nil) != (tt.want != nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, s := range []string{"100", "32-512", "32:70,1024-2048:30", "3:1e-300,4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sizes, err := ParseSizes(s)
		if err != nil {
			return
		}
		if err := (Values{Sizes: sizes}).check(); err != nil {
			t.Errorf("%q gives sizes that are refused: %v", s, err)
		}
	})
}

// Values have the sizes by weight, and within a range all alike.
func TestValueSizes(t *testing.T) {
	const draws = 200_000
	m := newValues(Values{Sizes: []Size{{10, 14, 3}, {20, 20, 1}, {5, 6, 0}}}, 1)
	r := rand.New(rand.NewPCG(1, 2))
	counts, want := make([]int, 21), make([]float64, 21)
	for n := 10; n <= 14; n++ {
		want[n] = 3.0 / 5 / 5
	}
	want[20], want[5], want[6] = 1.0/5, 1.0/10, 1.0/10
	for range draws {
		v := m.next(r)
		if len(v) > 20 || want[len(v)] == 0 {
			t.Fatalf("a value of %d bytes", len(v))
		}
		counts[len(v)]++
	}
	// Only those that can be drawn are classes.
	var c []int
	var p []float64
	for n := range want {
		if want[n] > 0 {
			c, p = append(c, counts[n]), append(p, want[n])
		}
	}
	chiSquare(t, "sizes", c, p)
	if mean := m.mean(); abs(mean-(0.6*12+0.2*20+0.2*5.5)) > 1e-9 {
		t.Errorf("mean size %v", mean)
	}
}

// Content is what its name says, measured with flate. The bounds: random data
// grow by the framing of stored blocks, 5 bytes in 64 KiB; compressible are
// half random, and what is said of the turns costs a tenth at most.
func TestContent(t *testing.T) {
	for _, tt := range []struct {
		content  Content
		min, max float64 // compressed size to size
	}{
		{Same, 0, 0.01},
		{"", 0, 0.01},
		{Random, 1, 1.001},
		{Compressible, 0.5, 0.6},
	} {
		m := newValues(Values{Sizes: []Size{{10_000, 10_000, 0}}, Content: tt.content}, 1)
		r := rand.New(rand.NewPCG(1, 2))
		var all bytes.Buffer
		w, err := flate.NewWriter(&all, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		v := m.next(r)
		w.Write(v)
		w.Close()
		if ratio := float64(all.Len()) / 10_000; ratio < tt.min || ratio > tt.max {
			t.Errorf("%s: compressed to %.3f of its size, want %v to %v", tt.content, ratio, tt.min, tt.max)
		}
		if _, fixed := m.fixed(); fixed != (tt.content == Same || tt.content == "") {
			t.Errorf("%s: fixed is %v", tt.content, fixed)
		}
	}
}

// Random values differ from each other and, with another seed, from others.
func TestRandomValuesDiffer(t *testing.T) {
	spec := testSpec(t, "set", 1)
	spec.Values = Values{Sizes: []Size{{16, 16, 0}}, Content: Random}
	seen := make(map[string]bool)
	for seed := range uint64(2) {
		spec.Seed = seed
		for _, args := range commandsIn(t, mustNew(t, spec).Source(1, 0).Append(nil, 100)) {
			seen[args[2]] = true
		}
	}
	if len(seen) < 195 { // of 65,536 places two may be the same
		t.Errorf("%d different values of 200", len(seen))
	}
}

func TestParseExpiry(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Expiry // zero: an error
	}{
		{"60", Expiry{60, 60}},
		{"10-60", Expiry{10, 60}},
		{"1-1", Expiry{1, 1}},
		{"315360000", Expiry{maxExpiry, maxExpiry}},
		{"315360001", Expiry{}}, {"", Expiry{}}, {"0", Expiry{}}, {"0-5", Expiry{}}, {"60-10", Expiry{}}, {"-5", Expiry{}},
		{"5-", Expiry{}}, {"1m", Expiry{}}, {"1.5", Expiry{}}, {"1-2-3", Expiry{}}, {"9223372036854775808", Expiry{}},
	} {
		got, err := ParseExpiry(tt.in)
		if (err != nil) != (tt.want == Expiry{}) || got != tt.want {
			t.Errorf("%q: %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func FuzzParseExpiry(f *testing.F) {
	for _, s := range []string{"60", "10-60", "0", "1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseExpiry(s)
		if err != nil {
			return
		}
		if again, err := ParseExpiry(e.String()); err != nil || again != e {
			t.Errorf("%q: %v is %q, which is %v, %v", s, e, e, again, err)
		}
		if n := e.draw(rand.New(rand.NewPCG(1, 2))); n < e.Min || n > e.Max {
			t.Errorf("%q: %d s is drawn", s, n)
		}
	})
}

func TestWithExpiry(t *testing.T) {
	spec := testSpec(t, "set", 1)
	with, err := spec.WithExpiry(Expiry{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, args := range commandsIn(t, mustNew(t, with).Source(1, 0).Append(nil, 1000)) {
		if len(args) != 5 || args[3] != "EX" || len(args[4]) != 2 || args[4] < "10" || args[4] > "20" {
			t.Fatalf("got %q", args)
		}
		seen[args[4]] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d different times of 11", len(seen))
	}
	if len(spec.Commands[0].Args) != 3 {
		t.Error("the spec itself has changed")
	}
	if _, err := testSpec(t, "get", 1).WithExpiry(Expiry{1, 1}); err == nil || !strings.Contains(err.Error(), "no SET") {
		t.Errorf("GET with an expiry: %v", err)
	}
	if _, err := spec.WithExpiry(Expiry{2, 1}); err == nil {
		t.Error("an expiry of 2 to 1 s is taken")
	}
}
