package discover

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/kvscout/kvscout/events"
)

// ErrRefused is an address that must not be reached.
var ErrRefused = errors.New("address is refused")

// Policy says which addresses discovery may reach. The zero value refuses what no engine can be at.
type Policy struct {
	// Allow lists the networks that workers are in; empty allows all that is not refused always.
	Allow []netip.Prefix
}

// ParsePolicy reads networks (10.0.0.0/8) and addresses. It errs with ErrRefused.
func ParsePolicy(networks []string) (Policy, error) {
	var p Policy
	for _, text := range networks {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, e := netip.ParseAddr(text)
			if e != nil {
				return Policy{}, fmt.Errorf("%w: %q is no network and no address", ErrRefused, text)
			}
			prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		}
		p.Allow = append(p.Allow, prefix.Masked())
	}
	return p, nil
}

// metadata are the addresses of clouds' metadata services that are not link-local: Alibaba, Oracle, Azure's wire server,
// AWS over IPv6.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"),
}

// Check errs with ErrRefused if addr must not be reached.
func (p Policy) Check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast(), addr.IsLinkLocalUnicast(), addr.IsInterfaceLocalMulticast():
		return fmt.Errorf("%w: %s", ErrRefused, addr)
	case addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%w: %s", ErrRefused, addr)
	}
	for _, m := range metadata {
		if addr == m {
			return fmt.Errorf("%w: %s is a metadata service", ErrRefused, addr)
		}
	}
	if len(p.Allow) == 0 {
		return nil
	}
	for _, prefix := range p.Allow {
		if prefix.Contains(addr) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is in no allowed network", ErrRefused, addr)
}

// CheckEndpoint errs with ErrRefused if text, a URL or a ZMQ endpoint to dial, has an address for a host that must not be
// reached. What a name stands for only Control can tell.
func (p Policy) CheckEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return nil // it has no host; whoever uses it says what is wrong with it
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || wildcards[u.Hostname()] {
		return nil
	}
	return p.Check(addr)
}

// Control is for net.Dialer: it sees the address that a name was resolved to, so that no name can lead elsewhere.
func (p Policy) Control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrRefused, address)
	}
	return p.Check(ap.Addr())
}

// wildcards are hosts that mean every interface of the worker.
var wildcards = map[string]bool{"*": true, "0.0.0.0": true, "::": true, "": true}

// endpoint is what a worker's answer means by text: its own host for a wildcard. It errs with ErrRefused or
// events.ErrSource. A name other than the worker's is refused: what it stands for may change after it was looked at.
func (p Policy) endpoint(text, workerHost string) (string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	host, port, err := net.SplitHostPort(rest)
	if scheme != "tcp" || err != nil {
		return "", fmt.Errorf("%w: endpoint %.100q is not tcp://host:port", ErrRefused, text)
	}
	if wildcards[host] {
		host = workerHost
	}
	if host != workerHost {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Errorf("%w: endpoint %.100q names another host than the worker's", ErrRefused, text)
		}
		if err := p.Check(addr); err != nil {
			return "", fmt.Errorf("endpoint %.100q: %w", text, err)
		}
	}
	out := "tcp://" + net.JoinHostPort(host, port)
	if e, err := events.ParseEndpoint(out); err != nil {
		return "", err
	} else if e.Bind {
		return "", fmt.Errorf("%w: endpoint %.100q has no host", ErrRefused, text)
	}
	return out, nil
}
