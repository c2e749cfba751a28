package probe

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// askAgain is the pause between questions to a server that does not answer.
const askAgain = 100 * time.Millisecond

// Same returns nil when the server and each master of its cluster answer within
// a time and are the processes that were connected to, by the run_id of INFO.
// One that does not tell its run_id has only to answer. The error says which
// does not answer or was started anew; a refused connection is not tried again.
func (s *Server) Same(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if len(s.Nodes) == 0 {
		return s.same(ctx)
	}
	for _, n := range s.Nodes {
		if err := n.same(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) same(ctx context.Context) error {
	for {
		err := s.Client.Ping(ctx).Err()
		var reply redis.Error
		if err == nil || errors.As(err, &reply) {
			break
		}
		gone := fmt.Errorf("%s has not come back: %w", s.Target.Addr(), s.Target.explain(context.WithoutCancel(ctx), err))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return gone // nothing listens, so that the process has ended
		}
		select {
		case <-ctx.Done():
			return gone
		case <-time.After(askAgain):
		}
	}
	text, err := s.Client.Info(ctx, "server").Result()
	if err != nil {
		return nil // it answers, and does not say more
	}
	if now := parseInfo(text)["run_id"]; now != s.Identity.RunID {
		return fmt.Errorf("%s was started anew: what it held and what was measured before belong to another process; run again, or go on with --resume", s.Target.Addr())
	}
	return nil
}
