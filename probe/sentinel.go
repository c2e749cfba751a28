package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// master returns t with the address of the master that its sentinels name:
// the first of them that knows it is believed.
func (t Target) master(ctx context.Context) (Target, error) {
	s := t.Sentinel
	what := fmt.Sprintf("asking the sentinels for %s", s.Master)
	var unanswered, known []string
	for _, addr := range s.Addrs {
		host, port, err := s.ask(ctx, addr)
		switch {
		case err == nil:
			return t.at(host, port), nil
		case ctx.Err() != nil:
			return t, fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
		var unknown unknownMasterError
		if errors.As(err, &unknown) {
			known = append(known, fmt.Sprintf("%s knows %s", addr, unknown))
		} else {
			unanswered = append(unanswered, strings.TrimPrefix(err.Error(), "connecting to "))
		}
	}
	if len(known) > 0 {
		return t, fmt.Errorf("%s: no sentinel knows a master of this name: %s", what, strings.Join(append(known, unanswered...), "; "))
	}
	return t, fmt.Errorf("%s: no sentinel answers: %s", what, strings.Join(unanswered, "; "))
}

// An unknownMasterError says that a sentinel does not watch a master of the
// name; it has the names that it does watch.
type unknownMasterError []string

func (e unknownMasterError) Error() string {
	if len(e) == 0 {
		return "none"
	}
	return strings.Join(e, ", ")
}

// ask asks one sentinel for the master's address.
func (s *Sentinel) ask(ctx context.Context, addr string) (host string, port int, err error) {
	host, port, err = splitAddr(addr)
	if err != nil {
		return "", 0, err
	}
	t := Target{User: s.User, Password: s.Password, TLS: s.TLS}.at(host, port)
	if t.TLS, err = t.TLS.load(); err != nil {
		return "", 0, err
	}
	c, err := t.dial(ctx, "PING")
	if err != nil {
		return "", 0, err
	}
	c.Close()
	client := redis.NewSentinelClient(t.options())
	defer client.Close()
	found, err := client.GetMasterAddrByName(ctx, s.Master).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", 0, knownMasters(ctx, client)
	case err != nil:
		return "", 0, fmt.Errorf("%s: %s; is this a sentinel?", addr, explainReply(err.Error()))
	case len(found) != 2:
		return "", 0, fmt.Errorf("%s: an address of %d parts; is this a sentinel?", addr, len(found))
	}
	return splitAddr(net.JoinHostPort(found[0], found[1]))
}

// knownMasters returns the names that a sentinel watches as an error.
func knownMasters(ctx context.Context, client *redis.SentinelClient) error {
	masters, err := client.Masters(ctx).Result()
	if err != nil {
		return unknownMasterError(nil)
	}
	var names unknownMasterError
	for _, m := range masters {
		fields, _ := m.([]any) // name, value, name, value
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == "name" {
				names = append(names, fmt.Sprint(fields[i+1]))
			}
		}
	}
	return names
}
