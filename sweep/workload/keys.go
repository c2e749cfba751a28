package workload

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// NewPrefix returns a key prefix that no other run has.
func NewPrefix() string {
	return "poolsweep:" + rand.Text()[:6] + ":"
}

// batch is how many keys are written or removed at a time: enough to make the
// round trips cheap, few enough not to hold up the server's other clients.
const batch = 500

// Preload writes the keys that the test reads, so that a GET hits. It does
// nothing for a test that reads none.
func (w *Workload) Preload(ctx context.Context, db redis.Cmdable) error {
	if !w.test.read {
		return nil
	}
	value := w.value()
	// Large values are sent a few at a time: the batch is held in memory.
	n := max(1, min(batch, (4<<20)/w.spec.ValueBytes))
	for first := 0; first < w.Keys(); first += n {
		_, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := first; i < min(first+n, w.Keys()); i++ {
				p.Set(ctx, w.Key(i), value, 0)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("preloading %d keys: %w", w.Keys(), err)
		}
	}
	return nil
}

// Remove removes every key that the workload can have written, by name and in
// batches, with UNLINK where the server has it and DEL where not. It touches
// no other key.
func (w *Workload) Remove(ctx context.Context, db redis.Cmdable) error {
	unlink := db.Unlink
	for first := 0; first < w.Keys(); first += batch {
		keys := make([]string, 0, batch)
		for i := first; i < min(first+batch, w.Keys()); i++ {
			keys = append(keys, w.Key(i))
		}
		err := unlink(ctx, keys...).Err()
		if err != nil && first == 0 && ctx.Err() == nil {
			// Servers before 4.0 and emulators have no UNLINK.
			unlink = db.Del
			err = unlink(ctx, keys...).Err()
		}
		if err != nil {
			return fmt.Errorf("removing our keys %s*: %w", w.spec.Prefix, err)
		}
	}
	return nil
}
