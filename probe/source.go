package probe

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Sources are the addresses of this machine that connections are opened from,
// in turn. Each has some 28,000 ports (net.ipv4.ip_local_port_range) to a
// server: more connections than that need more addresses. A nil *Sources leaves
// the choice to the system.
type Sources struct {
	addrs []netip.Addr
	next  atomic.Uint64
}

// ParseSources reads addresses with commas between them.
func ParseSources(list string) (*Sources, error) {
	s := new(Sources)
	for text := range strings.SplitSeq(list, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no address to connect from; want those of this machine, as 127.0.0.2,127.0.0.3", text)
		}
		s.addrs = append(s.addrs, a)
	}
	return s, nil
}

// local returns the next one, nil for the system's choice.
func (s *Sources) local() net.Addr {
	if s == nil {
		return nil
	}
	a := s.addrs[(s.next.Add(1)-1)%uint64(len(s.addrs))]
	return &net.TCPAddr{IP: a.AsSlice(), Zone: a.Zone()}
}
