package analyze

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sentences returns the verdict in plain words, to be printed under the rows:
// the knee, the peak and what lies between them, how sure that is, who stopped
// the throughput, and the pool that follows. Throughputs are the adjusted ones,
// from which the pass effect has been taken out: of a machine that changed its
// speed, a measured peak can be lower than a measured knee. Warnings are not
// repeated.
func (a *Analysis) Sentences() []string {
	if len(a.Steps) == 0 {
		return []string{"No knee can be named: " + a.Reason + "."}
	}
	var s []string
	if a.Answer {
		s = append(s, a.kneeSentence(), a.peakSentence())
		if a.Knee.Ceiling > 0 {
			s = append(s, fmt.Sprintf("Ceiling: beyond %s throughput falls; at %s it is %s below the peak. Do not exceed it, all pools together.",
				count(a.Knee.Ceiling, "client"), count(a.last().Clients, "client"), percent(1-Quantity(a.last().Adjusted)/a.Knee.PeakQPS)))
		}
		s = append(s, a.confidenceSentence())
		if a.RoundTrip > 0 {
			s = append(s, fmt.Sprintf("Idle: a round trip takes %s at least; %s would be busy at the plateau's throughput if no request ever waited.",
				milliseconds(a.RoundTrip), count(roundUp(float64(a.IdleClients)), "connection")))
		}
	} else {
		s = append(s, "No knee can be named: "+a.Reason+".")
		best := a.row(a.Knee.Peak)
		s = append(s, fmt.Sprintf("Highest throughput measured: %s requests/s at %s.",
			thousands(best.Adjusted), count(best.Clients, "client")))
	}
	s = append(s, a.bottleneckSentence())
	if a.Answer {
		if second := a.uslSentence(); second != "" {
			s = append(s, second)
		}
		s = append(s, a.recommendationSentence())
	}
	if next := a.nextSentence(); next != "" {
		s = append(s, next)
	}
	return s
}

// nextSentence says what to measure next, "" when there is nothing or when more
// levels or trials of the same kind would not help.
func (a *Analysis) nextSentence() string {
	p := a.Next
	levels := slices.Concat(p.Extend, p.Below, p.Between)
	slices.Sort(levels)
	var todo []string
	if len(levels) > 0 {
		todo = append(todo, "measure "+clientList(levels))
	}
	if len(p.Repeat) > 0 {
		todo = append(todo, "add three trials at "+clientList(p.Repeat))
	}
	switch {
	case a.Noise.Sigma > tooNoisySigma:
		return "Next: find what else uses these machines or the network, and sweep again when it is quiet."
	case len(todo) == 0:
		return ""
	}
	return "Next: " + strings.Join(todo, ", and ") + ": " + strings.Join(p.Why, "; ") + "."
}

// clientList returns "10, 20 clients".
func clientList(levels []int) string {
	s := make([]string, len(levels))
	for i, n := range levels {
		s[i] = strconv.Itoa(n)
	}
	if len(levels) == 1 && levels[0] == 1 {
		return "1 client"
	}
	return strings.Join(s, ", ") + " clients"
}

func (a *Analysis) kneeSentence() string {
	k := a.Knee
	share := k.QPS / k.PeakQPS
	text := fmt.Sprintf("Knee: %s requests/s", gives(k.Clients, float64(k.QPS)))
	if k.Peak == k.Clients {
		text += ", the highest throughput measured, with the fewest connections"
	} else {
		text += fmt.Sprintf(", %s of the peak with the fewest connections", percent(share))
	}
	if float64(share) < 1-a.Tolerance {
		text += fmt.Sprintf(" (%s of the plateau: the highest of several noisy levels is partly luck)", percent(k.QPS/k.Plateau))
	}
	if k.AtFirst {
		text += "; it is the first level, so fewer may do as well"
	}
	return text + "."
}

func (a *Analysis) peakSentence() string {
	k := a.Knee
	if k.Peak == k.Clients {
		return fmt.Sprintf("Peak: the same level; QPS stops rising at %s.", count(k.Peak, "client"))
	}
	return fmt.Sprintf("Peak: %s requests/s; QPS stops rising here. From the knee to the peak, %d more connections add %s throughput and %s.",
		gives(k.Peak, float64(k.PeakQPS)), k.Peak-k.Clients, signed(k.PeakQPS/k.QPS-1), a.cost())
}

// cost says what the connections between knee and peak cost in latency: of the
// 99th percentile where it is known, else of the mean, else of what Little's
// law makes of the two throughputs.
func (a *Analysis) cost() string {
	knee, peak := a.row(a.Knee.Clients), a.row(a.Knee.Peak)
	if knee.P99 > 0 && peak.P99.Known() {
		return fmt.Sprintf("%s p99 latency (%s to %s)", signed(peak.P99/knee.P99-1), milliseconds(knee.P99), milliseconds(peak.P99))
	}
	if knee.Mean > 0 && peak.Mean.Known() {
		return fmt.Sprintf("%s mean latency (%s to %s)", signed(peak.Mean/knee.Mean-1), milliseconds(knee.Mean), milliseconds(peak.Mean))
	}
	more := Quantity(float64(peak.Clients)/float64(knee.Clients)*(knee.QPS/peak.QPS) - 1)
	return signed(more) + " mean latency (by Little's law; none was recorded)"
}

func (a *Analysis) confidenceSentence() string {
	k := a.Knee
	if !a.Noise.Sigma.Known() {
		return "Confidence: NONE is stated, as each step has one trial and the noise is unknown; take three trials a step."
	}
	text := fmt.Sprintf("Confidence: %s. ", k.Confidence)
	if k.Low == k.High {
		text += fmt.Sprintf("The knee is at %s with 95 %%", count(k.Low, "client"))
	} else {
		text += fmt.Sprintf("The knee lies between %d and %d clients with 95 %%", k.Low, k.High)
	}
	switch {
	case k.Soft:
		text += ", and no single level in that range stands out, as the curve bends slowly"
	case k.Low != k.High:
		text += fmt.Sprintf(", and at %d itself with %s", k.Clients, percent(k.Probability))
	}
	return text + fmt.Sprintf(" (noise of one trial: σ = %s).", percent(a.Noise.Sigma))
}

// stoppedBy says each cause in words.
var stoppedBy = map[Cause]string{
	CauseGenerator:   "the load generator",
	CauseServerCPU:   "the server's CPU",
	CauseCPULimit:    "the CPU limit of the server's container",
	CauseSharedCPU:   "a CPU that had to be shared",
	CauseNetwork:     "the network",
	CausePersistence: "persistence",
	CauseMemory:      "memory",
	CauseLatency:     "latency",
	CauseUnknown:     "unknown",
}

func (a *Analysis) bottleneckSentence() string {
	b := a.Bottleneck
	text := "Stopped by: " + stoppedBy[b.Cause]
	if a.Knee.Shape == ShapeRising && (b.Cause == CauseLatency || b.Cause == CauseUnknown) {
		text = "Not stopped within this range"
	}
	if len(b.Evidence) > 0 {
		text += " (" + strings.Join(b.Evidence, "; ") + ")"
	}
	if b.Advice != "" {
		text += ". " + strings.ToUpper(b.Advice[:1]) + b.Advice[1:]
	}
	return text + "."
}

func (a *Analysis) recommendationSentence() string {
	r := a.Recommendation
	if r.Pool == 0 {
		return "Recommendation: none: " + strings.TrimSuffix(r.Reason, ".") + "."
	}
	text := fmt.Sprintf("Recommendation: a pool of %s", count(r.Pool, "connection"))
	if r.Instances*r.Procs > 1 {
		text += fmt.Sprintf(" in all, %d in each of %s", r.PerInstance, count(r.Instances, "instance"))
		if r.Procs > 1 {
			text += fmt.Sprintf(", %d in each of its %d processes", r.PerProcess, r.Procs)
		}
	}
	if r.Nodes > 1 {
		text += fmt.Sprintf(", %d from each process to each of %d nodes", r.PerNode, r.Nodes)
	}
	if r.Shards > 1 {
		text += fmt.Sprintf(" for each of %d shards", r.Shards)
	}
	if r.Low > 0 && r.Low < r.High {
		text += fmt.Sprintf(" (range %d to %d in all)", r.Low, r.High)
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return strings.TrimSuffix(text, ".") + "."
}

// uslSentence is the second opinion, "" where the law has none within the
// levels that were measured, or does not describe them.
func (a *Analysis) uslSentence() string {
	u := a.USL
	describes := u.Misfit <= Quantity(a.Tolerance) || u.Misfit <= 2*a.Noise.Sigma
	if !u.Fitted || u.Beyond || !u.Peak.Known() || !describes {
		return ""
	}
	clients := func(q Quantity) string { return strconv.Itoa(int(math.Round(float64(q)))) }
	text := fmt.Sprintf("Second opinion: the Universal Scalability Law puts the peak at %s clients", clients(u.Peak))
	if u.PeakRange.Low.Known() && u.PeakRange.High.Known() {
		text += fmt.Sprintf(" (%s to %s with 95 %%)", clients(u.PeakRange.Low), clients(u.PeakRange.High))
	}
	return text + fmt.Sprintf("; it misses the levels by %s.", percent(u.Misfit))
}

// row returns the step with that number of clients, which must exist.
func (a *Analysis) row(clients int) Step {
	for _, s := range a.Steps {
		if s.Clients == clients {
			return s
		}
	}
	panic(fmt.Sprintf("analyze: no step with %d clients", clients))
}

func (a *Analysis) last() Step { return a.Steps[len(a.Steps)-1] }

// gives returns "12 clients give 98,412".
func gives(clients int, qps float64) string {
	verb := "give"
	if clients == 1 {
		verb = "gives"
	}
	return fmt.Sprintf("%s %s %s", count(clients, "client"), verb, thousands(qps))
}

// count returns "1 trial", "3 trials".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// thousands returns x rounded, with commas; below 10 with two decimals.
func thousands(x float64) string {
	if math.Abs(x) < 10 && x != math.Round(x) {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	digits := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent returns a ratio in percent, below 10 with one decimal.
func percent(ratio Quantity) string {
	p := float64(ratio) * 100
	if math.Abs(p) < 9.95 && math.Abs(p-math.Round(p)) >= 0.05 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// signed is percent with its sign, as in "+5 %".
func signed(ratio Quantity) string {
	if ratio >= 0 {
		return "+" + percent(ratio)
	}
	return "−" + percent(-ratio)
}

// milliseconds returns a time in seconds in ms, to three digits.
func milliseconds(seconds Quantity) string {
	return fmt.Sprintf("%.3g ms", float64(seconds)*1000)
}
