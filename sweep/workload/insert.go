package workload

import "sync/atomic"

// insertions counts the keys that were added to the keyspace of a part. Of a
// fleet each agent adds every stride-th number, so that no two insert the same
// key. The zero value is that of a single generator.
type insertions struct {
	count  atomic.Int64 // of this generator
	first  int64        // of its numbers, below stride
	stride int64        // 0 means 1
}

// next returns how far beyond the keyspace the next inserted key lies.
func (x *insertions) next() int64 {
	return (x.count.Add(1)-1)*max(1, x.stride) + x.first
}

// span returns how many numbers beyond the keyspace are taken, as far as this
// generator can know: the others of a fleet insert about as fast.
func (x *insertions) span() int64 { return x.count.Load() * max(1, x.stride) }

// Stripe makes the workload that of the i-th of n generators: of the keys that
// are inserted beyond the keyspace it has every n-th. It must be called before
// the first Source draws.
func (w *Workload) Stripe(i, n int) {
	for _, p := range w.parts {
		p.inserted.first, p.inserted.stride = int64(i), int64(n)
	}
}

// Inserted returns how many keys this generator has inserted in each part.
func (w *Workload) Inserted() []int64 {
	var counts []int64
	for _, p := range w.parts {
		counts = append(counts, p.inserted.count.Load())
	}
	return counts
}

// Cover has Remove take as many keys beyond the keyspace as n generators have
// written of which none has inserted more than these counts, one for each part.
// Counts that are lower than earlier ones change nothing.
func (w *Workload) Cover(counts []int64, n int) {
	for i, p := range w.parts {
		if i < len(counts) {
			count := &p.inserted.count
			count.Store(max(count.Load(), counts[i]*int64(n)))
		}
	}
}
