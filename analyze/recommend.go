package analyze

// A Recommendation is the pool that follows from a knee.
type Recommendation struct {
	Pool        int        `json:"pool"` // connections of all instances together
	Low         int        `json:"low"`
	High        int        `json:"high"`
	PerInstance int        `json:"per_instance"`
	Instances   int        `json:"instances"`
	Goal        Goal       `json:"goal"`
	Confidence  Confidence `json:"confidence"`
	Reason      string     `json:"reason"`
}

func recommend(c Curve, k Knee, o Options) Recommendation {
	r := Recommendation{Pool: k.Clients, Low: k.Low, High: k.High, Instances: max(o.Instances, 1), Goal: o.Goal, Confidence: k.Confidence}
	if o.Goal == GoalPeak && k.Clients > 0 {
		r.Pool = k.Peak
	}
	r.PerInstance = (r.Pool + r.Instances - 1) / r.Instances
	return r
}
