package provider

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// addressError is an address that a name resolved to and that is not dialed.
type addressError struct {
	addr   netip.Addr
	reason string
}

func (e *addressError) Error() string {
	return fmt.Sprintf("address %s is not allowed: %s", e.addr, e.reason)
}

// metadata are services that hand credentials to any caller from the inside,
// at addresses that are not link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
}

// nat64 embeds IPv4 addresses: RFC 6052.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// addresses decides where connections may go.
type addresses struct {
	allow []netip.Prefix // whatever the rules say
	own   bool           // the base URL is the operator's: it may be of the inner network
	plain bool           // http: nothing secret crosses a public network
}

// newDialer checks every address at the moment it is dialed: what a name
// resolved to before proves nothing.
func newDialer(c Config, p preset, base *url.URL) *net.Dialer {
	a := newAddresses(c, p, base)
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: a.control}
}

func newAddresses(c Config, p preset, base *url.URL) addresses {
	plain := base.Scheme == "http"
	return addresses{allow: c.AllowAddresses, own: plain || c.BaseURL != p.base(c.Location), plain: plain}
}

func (a addresses) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse address to dial: %w", err)
	}
	return a.check(at.Addr())
}

// check returns an [*addressError] for an address that is not to be dialed.
func (a addresses) check(ip netip.Addr) error {
	ip = unwrap(ip)
	contains := func(p netip.Prefix) bool { return p.Contains(ip) }
	inner := ip.IsLoopback() || ip.IsPrivate()
	switch {
	case slices.ContainsFunc(a.allow, contains):
		return nil
	case ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast():
		return &addressError{ip, "not a host of a network"}
	case slices.ContainsFunc(metadata, contains):
		return &addressError{ip, "a metadata service"}
	case inner && !a.own:
		return &addressError{ip, "of the inner network, behind the provider's public name"}
	case !inner && a.plain:
		return &addressError{ip, "public, and http:// would show key and text to the network"}
	}
	return nil
}

// unwrap finds the IPv4 address in an IPv6 one, and drops a zone.
func unwrap(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if b := ip.As16(); nat64.Contains(ip) {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}
