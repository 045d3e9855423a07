package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// greetTime limits the wait for the INFO with which a NATS server begins; lookTime
	// limits the probe of one address.
	greetTime = 300 * time.Millisecond
	lookTime  = 2 * time.Second
	// maxProbed limits the probed addresses.
	maxProbed = 3
)

// found returns a clause about the program at the addresses of a failed connect, or "". It replaces the
// cause if another program listens there.
func (o *Options) found(ctx context.Context, t Cause) (string, Cause) {
	switch {
	case t == CauseUser:
		return o.refusedIdentity(), t
	case t != CauseServer && t != "" || o.InProcess != nil:
		return "", t
	}
	var all []string
	for i, addr := range strings.Split(o.URL, ",") {
		if i == maxProbed {
			break
		}
		one, other := probe(ctx, strings.TrimSpace(addr))
		if other {
			t = CauseOther
		}
		if one != "" {
			all = append(all, one)
		}
	}
	return strings.Join(all, ", "), t
}

// refusedIdentity returns a clause with the user or the credentials that the server refuses.
func (o *Options) refusedIdentity() string {
	u, err := parseURL(o.URL)
	switch {
	case o.Creds != "":
		return "it refuses the credentials in " + o.Creds
	case o.User != "" && o.Password == "":
		return fmt.Sprintf("it refuses user %q without a password", o.User)
	case o.User != "":
		return fmt.Sprintf("it refuses user %q with this password", o.User)
	case err == nil && u.User != nil:
		if _, ok := u.User.Password(); ok {
			return fmt.Sprintf("it refuses user %q with this password", u.User.Username())
		}
		return "it refuses this token"
	default:
		return "no user was named"
	}
}

func parseURL(addr string) (*url.URL, error) {
	if !strings.Contains(addr, "://") {
		addr = "nats://" + addr
	}
	return url.Parse(addr)
}

// probe connects to one address. other reports that a program other than a NATS server listens.
func probe(ctx context.Context, addr string) (found string, other bool) {
	u, err := parseURL(addr)
	if err != nil || u.Scheme == "ws" || u.Scheme == "wss" {
		return "", false
	}
	at := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), fmt.Sprint(nats.DefaultPort)))
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		if link, ok := errors.AsType[*net.OpError](err); ok {
			err = link.Err
		}
		return fmt.Sprintf("nothing answers at %s (%v)", at, err), false
	}
	defer conn.Close()
	text := firstOf(conn, greetTime)
	if text == "" {
		if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			return "", false
		}
		text = firstOf(conn, lookTime-greetTime)
	}
	switch {
	case strings.HasPrefix(text, "INFO "):
		return "", false
	case strings.HasPrefix(text, "HTTP/") && strings.Contains(text, `"name":"compactd"`):
		return fmt.Sprintf("at %s is the HTTP of a compactd worker", at), true
	case strings.HasPrefix(text, "HTTP/") && strings.Contains(strings.ToLower(text), "nats"):
		return fmt.Sprintf("at %s is the monitoring of a NATS server", at), true
	case strings.HasPrefix(text, "HTTP/"):
		return fmt.Sprintf("at %s is an HTTP server", at), true
	case text == "":
		return fmt.Sprintf("at %s a program takes connections and does not greet as NATS does", at), true
	default:
		return fmt.Sprintf("at %s is a program that is no NATS server", at), true
	}
}

// firstOf returns the first bytes that arrive within a time, at most a few lines.
func firstOf(conn net.Conn, within time.Duration) string {
	_ = conn.SetReadDeadline(time.Now().Add(within)) // fails only on a closed connection, where the read fails too
	buf := make([]byte, 4<<10)
	n, _ := io.ReadAtLeast(conn, buf, 512)
	return string(buf[:n])
}
