package probe

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Server is a target that has answered: a single server, a node of a
// cluster, or a whole cluster. It must be closed after use.
type Server struct {
	Target   Target // of the master, if sentinels were asked for it
	Identity Identity

	// Client is the control connection: a pool of at most two, with the
	// rights of the load. Of a cluster it is that to the node of Target.
	Client *redis.Client

	// Keys is the client for commands on keys. It is Client, or for a cluster
	// one that finds the node of a key and follows it when it moves.
	Keys redis.UniversalClient

	// Nodes are the masters of a cluster that own slots, by their first slot;
	// empty for a single server.
	Nodes []*Server

	// Slots are the hash slots that a node of a cluster owned when it was
	// connected to; empty for a single server and for a whole cluster.
	Slots []SlotRange

	following string // " (host:port)" of a replica's master, "" when it is not told
}

// Connect connects to the target, reads the server's identity and reports
// what keeps it from being measured: nothing listens, wrong credentials, not
// Redis, still loading, a replica, a sentinel, a cluster that lacks slots.
// Each is an error of one line.
//
// When the target has sentinels, they are asked where the master is. When it
// is a node of a cluster, also a replica, all its masters are connected to.
func Connect(ctx context.Context, t Target) (*Server, error) {
	ready, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	s, err := ready.connect(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Sentinel != nil && isReplica(s.Identity.Role):
		err = fmt.Errorf("connecting to %s: the sentinels call it the master of %s, but it is a replica; is a failover under way?",
			ready.Addr(), t.Sentinel.Master)
	case s.Identity.Mode == "cluster":
		err = s.connectCluster(ctx)
	case isReplica(s.Identity.Role):
		err = fmt.Errorf("connecting to %s: this is a replica; sweep its master%s instead", ready.Addr(), s.following)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if t.Sentinel != nil {
		s.Identity.Sentinel = t.Sentinel.Master
	}
	return s, nil
}

// connect connects to one server, whatever its role.
func (t Target) connect(ctx context.Context) (*Server, error) {
	// The first connection is ours and not go-redis', so that what is wrong
	// is said in our words.
	c, err := t.dial(ctx, "PING")
	if err != nil {
		return nil, err
	}
	c.Close()
	s := &Server{Target: t, Client: t.client()}
	s.Keys = s.Client
	if err := s.identify(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the control connections.
func (s *Server) Close() error {
	var errs []error
	for _, n := range s.Nodes {
		errs = append(errs, n.Close())
	}
	if s.Keys != redis.UniversalClient(s.Client) {
		errs = append(errs, s.Keys.Close())
	}
	return errors.Join(append(errs, s.Client.Close())...)
}

// client returns the control connection to the target, which must be ready.
func (t Target) client() *redis.Client {
	return redis.NewClient(t.options())
}

func (t Target) options() *redis.Options {
	logging.Disable() // what goes wrong comes back as an error
	return &redis.Options{
		Network: t.Network,
		Addr:    t.Addr(),
		// Ours, as go-redis' own sets no deadline for TLS.
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return t.transport(ctx)
		},
		// Not ClientName, with which go-redis gives up where CLIENT is
		// forbidden.
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			c.ClientSetName(ctx, clientName)
			return nil
		},
		Username:        t.User,
		Password:        t.Password.Reveal(),
		DB:              t.DB,
		Protocol:        2, // what replies look like must not depend on the server
		DialTimeout:     replyTimeout,
		ReadTimeout:     replyTimeout,
		WriteTimeout:    replyTimeout,
		PoolSize:        2,
		MaxRetries:      -1, // a retry would hide a stall from the sampler
		DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
}
