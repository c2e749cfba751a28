package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A slot that has moved is the other master's with all its keys. The slot of
// {bar} is 5061 (CLUSTER KEYSLOT), of the first master.
func TestMigrate(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	ctx := context.Background()
	const slot = 5061
	first, third := c.Masters[0].Client(t), c.Masters[2].Client(t)
	for _, key := range []string{"{bar}1", "{bar}2", "{bar}3"} {
		if err := first.Set(ctx, key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	c.Migrate(t, slot, 0, 2)
	if v, err := third.Get(ctx, "{bar}2").Result(); err != nil || v != "x" {
		t.Errorf("the new owner has %q, %v", v, err)
	}
	if err := first.Get(ctx, "{bar}2").Err(); err == nil || !redis.HasErrorPrefix(err, "MOVED 5061 "+c.Masters[2].Addr) {
		t.Errorf("the old owner says %v, want MOVED", err)
	}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	r := c.AddReplica(t, 1)
	if role := do(t, r.Client(t), "ROLE").Val().([]any)[0]; role != "slave" {
		t.Errorf("role %v", role)
	}
}
