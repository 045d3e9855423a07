package inspect

import (
	"context"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
)

// users are the users of deploy/cluster except tenants.
var users = []string{"worker", "edge", "operator", "monitor", "system"}

// passwords tries whether the server takes a user without a password.
func (d *doctor) passwords(ctx context.Context) {
	if d.Dial == nil {
		return
	}
	if d.takes(ctx, "doctor-"+nuid.Next()) {
		d.note("passwords", "an external server with the users of deploy/cluster, where others reach its port", "the server takes anyone: it has no users")
		return
	}
	var open []string
	for _, user := range users {
		if d.takes(ctx, user) {
			open = append(open, user)
		}
	}
	if len(open) > 0 {
		d.problem("passwords", "run deploy/cluster/setup again, which replaces empty passwords, and reload the server", "the server takes an empty password of %s", strings.Join(open, ", "))
		return
	}
	d.ok("passwords", "no user of deploy/cluster has an empty one")
}

// takes reports whether a user may connect without a password, where this connection is.
func (d *doctor) takes(ctx context.Context, user string) bool {
	at := d.Conn.ConnectedUrl()
	if u, err := url.Parse(at); err == nil {
		u.User = nil
		at = u.String()
	}
	nc, err := d.Dial(ctx, at, user)
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

// DialAs connects with the settings of o as a user that has no password.
func DialAs(o connect.Options) func(ctx context.Context, url, user string) (*nats.Conn, error) {
	return func(ctx context.Context, url, user string) (*nats.Conn, error) {
		o.URL, o.User, o.Password, o.Creds = url, user, "", ""
		return connect.Open(ctx, o)
	}
}

// serverFiles looks for empty passwords in configuration files of nats-server.
func (d *doctor) serverFiles() {
	for _, file := range d.ServerFiles {
		open, err := embedded.EmptyPasswords(file)
		switch {
		case err != nil:
			d.problem("passwords", "", "%v", err)
		case len(open) > 0:
			d.problem("passwords", "run deploy/cluster/setup again, which replaces empty passwords, and reload the server", "%s: the password of %s is empty", file, strings.Join(open, ", "))
		default:
			d.ok("passwords", "%s: none is empty", file)
		}
	}
}
