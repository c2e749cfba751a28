package sweep

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// Vary names a setting of the server and the values that are compared. The
// zero value varies nothing.
type Vary struct {
	Setting string   `json:"setting"` // as in CONFIG SET
	Values  []string `json:"values"`  // two or more, each once
}

// ParseVary reads "appendonly=no,yes".
func ParseVary(s string) (Vary, error) {
	name, values, ok := strings.Cut(s, "=")
	v := Vary{Setting: strings.ToLower(strings.TrimSpace(name)), Values: strings.Split(values, ",")}
	if !ok || v.Setting == "" || len(v.Values) < 2 {
		return Vary{}, fmt.Errorf("%q is nothing to vary; want SETTING=VALUE,VALUE, as in appendonly=no,yes", s)
	}
	if secretOrAddress.MatchString(v.Setting) {
		return Vary{}, fmt.Errorf("%q is not varied: it is a secret, or what we connect to", v.Setting)
	}
	seen := make(map[string]bool)
	for _, x := range v.Values {
		if seen[x] {
			return Vary{}, fmt.Errorf("%q has the value %q twice", s, x)
		}
		seen[x] = true
	}
	return v, nil
}

// secretOrAddress are settings whose values must not reach a file, or with
// which the server would be lost.
var secretOrAddress = regexp.MustCompile(`pass|auth|user|^(tls-)?port$|^bind|socket|^tls-|^dir$|^acl`)

// sweepName names the sweep of a workload with a value of the setting.
func (p Plan) sweepName(spec workload.Spec, value string) string {
	if p.Vary.Setting == "" {
		return spec.Name
	}
	return fmt.Sprintf("%s, %s %s", spec.Name, p.Vary.Setting, value)
}

// A setting is one that is varied on every master, and what it was before. A
// nil *setting is none.
type setting struct {
	name    string
	nodes   []*probe.Server
	before  []string // of each node
	current string
	changed bool // current has been set
}

// settleTimeout bounds the wait for what a setting makes the server do.
const settleTimeout = time.Minute

// vary reads what the setting is now.
func vary(ctx context.Context, s *probe.Server, v Vary) (*setting, error) {
	if v.Setting == "" {
		return nil, nil
	}
	x := &setting{name: v.Setting, nodes: masters(s)}
	for _, n := range x.nodes {
		values, err := n.Client.ConfigGet(ctx, v.Setting).Result()
		if err != nil {
			return nil, fmt.Errorf("varying %s: CONFIG GET: %w", v.Setting, err)
		}
		now, ok := values[v.Setting]
		if !ok {
			return nil, fmt.Errorf("varying %s: %s has no such setting", v.Setting, n.Target.Addr())
		}
		x.before = append(x.before, now)
	}
	return x, nil
}

// set gives the setting a value and waits until the server has done what that
// makes it do.
func (x *setting) set(ctx context.Context, value string) error {
	if x == nil || x.changed && x.current == value {
		return nil
	}
	x.current, x.changed = value, true
	for _, n := range x.nodes {
		err := n.Client.ConfigSet(ctx, x.name, value).Err()
		if ctx.Err() != nil {
			return fmt.Errorf("varying %s: %w", x.name, context.Cause(ctx))
		}
		if err != nil {
			return fmt.Errorf("varying %s: CONFIG SET to %q: %w; can it be set while the server runs?", x.name, value, err)
		}
		if err := settle(ctx, n); err != nil {
			return fmt.Errorf("varying %s: %w", x.name, err)
		}
	}
	return nil
}

// settle waits until no child saves or rewrites, as it does when appendonly
// has been turned on.
func settle(ctx context.Context, n *probe.Server) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		busy, err := n.Saving(ctx)
		if err != nil || !busy {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the save of %s: %w", n.Target.Addr(), context.Cause(ctx))
		case <-time.After(20 * time.Millisecond): // until the next look
		}
	}
}

// restore gives the setting back what it was, even when ctx is over.
func (x *setting) restore(ctx context.Context) error {
	if x == nil || !x.changed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	var errs []error
	for i, n := range x.nodes {
		if err := n.Client.ConfigSet(ctx, x.name, x.before[i]).Err(); err != nil {
			errs = append(errs, fmt.Errorf("restoring %s of %s to %q: %w; set it by hand", x.name, n.Target.Addr(), x.before[i], err))
		}
	}
	return errors.Join(errs...)
}
