package workload

import (
	"slices"
	"testing"
)

// Generators of a fleet insert different keys, and the removal covers those of
// all, also of one that has inserted more than the others.
func TestStripe(t *testing.T) {
	const n = 3
	var numbers, counts []int64
	for i := range n {
		x := insertions{first: int64(i), stride: n}
		for range 10 + i {
			numbers = append(numbers, x.next())
		}
		if x.span() != int64(n*(10+i)) {
			t.Errorf("a span of %d after %d keys of %d generators", x.span(), 10+i, n)
		}
		counts = append(counts, x.count.Load())
	}
	slices.Sort(numbers)
	if len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("keys were inserted twice: %v", numbers)
	}
	spec, err := YCSB("d")
	if err != nil {
		t.Fatal(err)
	}
	spec.Prefix = "p:"
	w, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		w.Cover([]int64{c}, n)
	}
	w.Cover([]int64{1}, n) // lower: changes nothing
	last := numbers[len(numbers)-1]
	if got := int64(w.keysOf(family{kind: "user"}, 0) - spec.Keys.Space); got <= last {
		t.Errorf("%d keys beyond the keyspace are removed, the last one has the number %d", got, last)
	}
	if got := w.Inserted()[0]; got != n*slices.Max(counts) {
		t.Errorf("%d keys are covered, want %d", got, n*slices.Max(counts))
	}
}
