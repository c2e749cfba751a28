package verify

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient returns a go-redis client with a pool of exactly so many
// connections, all of them open. Apart from the pool it is as applications
// have it, with one difference: it does not repeat what has failed, since a
// repeated request is one more arrival.
//
// dial opens a connection that is authenticated already. A probe.Target's says
// in one line what is wrong.
func newClient(ctx context.Context, dial func(context.Context) (net.Conn, error), connections int, timeout time.Duration) (*redis.Client, error) {
	logging.Disable() // what goes wrong comes back as an error
	c := redis.NewClient(&redis.Options{
		Dialer:          func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		PoolSize:        connections,
		MaxActiveConns:  connections,
		PoolTimeout:     timeout,
		ConnMaxIdleTime: -1, // none is closed and opened anew within a trial
		MaxRetries:      -1,
		DialerRetries:   1,
		DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
	if err := openAll(ctx, c, connections); err != nil {
		c.Close()
		return nil, fmt.Errorf("opening %d connections: %w", connections, err)
	}
	return c, nil
}

// openAll opens every connection of the pool, by holding them all at once: a
// pool opens one only when none is free.
func openAll(ctx context.Context, c *redis.Client, connections int) error {
	held := make([]*redis.Conn, connections)
	errs := make([]error, connections)
	var all sync.WaitGroup
	for i := range held {
		held[i] = c.Conn()
		all.Go(func() { errs[i] = held[i].Ping(ctx).Err() })
	}
	all.Wait()
	var first error
	for i, h := range held {
		h.Close()
		if first == nil {
			first = errs[i]
		}
	}
	return first
}
