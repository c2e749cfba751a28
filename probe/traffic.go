package probe

import (
	"context"
	"fmt"
	"time"
)

// Traffic is what others do on a server before the load.
type Traffic struct {
	CommandsPerSec float64 // of everybody but us
	OtherClients   int64   // connections that are not ours
	SaveFailed     bool    // the last RDB save or AOF write failed: the server may refuse writes
}

// Traffic watches the server for a while. On a cluster it is the sum over the
// masters. What INFO does not tell counts as none.
func (s *Server) Traffic(ctx context.Context, over time.Duration) (Traffic, error) {
	nodes := s.Nodes
	if len(nodes) == 0 {
		nodes = []*Server{s}
	}
	var t Traffic
	before := make([]info, len(nodes))
	for i, n := range nodes {
		before[i] = n.stats(ctx)
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return t, fmt.Errorf("watching %s: %w", s.Target.Addr(), context.Cause(ctx))
	case <-time.After(over):
	}
	for i, n := range nodes {
		seconds := time.Since(begun).Seconds()
		after := n.stats(ctx)
		// The two INFOs of ours are among what was processed between.
		commands := after.int("total_commands_processed") - before[i].int("total_commands_processed") - 1
		t.CommandsPerSec += max(0, float64(commands)) / seconds
		ours := int64(n.Client.PoolStats().TotalConns)
		t.OtherClients += max(0, after.int("connected_clients")-ours)
		t.SaveFailed = t.SaveFailed || after["rdb_last_bgsave_status"] == "err" || after["aof_last_write_status"] == "err"
	}
	return t, nil
}

// stats returns INFO; empty where the server does not give it.
func (s *Server) stats(ctx context.Context) info {
	text, err := s.Client.Info(ctx).Result()
	if err != nil {
		return info{}
	}
	return parseInfo(text)
}

// Saving reports whether a child of the server writes an RDB or rewrites the
// AOF, or is about to.
func (s *Server) Saving(ctx context.Context) (bool, error) {
	text, err := s.Client.Info(ctx, "persistence").Result()
	if err != nil {
		return false, s.Target.explain(ctx, err)
	}
	in := parseInfo(text)
	for _, name := range []string{"rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"} {
		if in.int(name) > 0 {
			return true, nil
		}
	}
	return false, nil
}
