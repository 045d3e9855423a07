package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Options are where a connection goes, and its callbacks.
type Options struct {
	// URL is one address or several with commas between them; user and password
	// may stand in it. Default nats://127.0.0.1:4222. Not used with InProcess.
	URL string
	// Creds is the path of a .creds file; "" for none.
	Creds string
	// User and Password are for a server that authenticates by them; "" for none, or
	// those of the URL.
	User, Password string
	// CA, Cert and Key are paths of PEM files; "" for none. With CA the link is
	// encrypted, and to a server whose certificate this authority has signed. Cert and
	// Key are for a server that requires certificates of its clients.
	CA, Cert, Key string
	// Name is what the server shows of the connection. Default "compactd".
	Name string
	// InProcess is an embedded server, reached without a socket. An
	// embedded.Server is one.
	InProcess nats.InProcessConnProvider
	// Timeout bounds the first connect, and every dial after it. Default 5 s.
	Timeout time.Duration
	// Pace is what the connections of a process to one server share. Default one of its own.
	Pace *Pace

	// OnError receives what happens outside of any call: a slow subscription, a
	// missing permission. Must not block.
	OnError func(error)
	// OnDisconnect is called when the link is lost; the error may be nil.
	OnDisconnect func(error)
	// OnReconnect receives the address, without password, when the link is back.
	OnReconnect func(url string)
}

// Open opens a connection that lasts: once established, it reconnects by itself
// for ever, even after refused credentials, until it is closed. Only the first
// try can fail, with a [*Error].
func Open(ctx context.Context, o Options) (*nats.Conn, error) {
	o.URL = cmp.Or(o.URL, nats.DefaultURL)
	if err := ctx.Err(); err != nil {
		return nil, o.failed(ctx, err)
	}
	if err := o.checkFiles(); err != nil {
		return nil, o.failed(ctx, err)
	}
	type result struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan result, 1)
	go func() { // nats.Connect takes no context
		nc, err := nats.Connect(o.URL, o.natsOptions()...)
		for tries := 1; pinged(err) && tries < pingTries && ctx.Err() == nil; tries++ {
			nc, err = nats.Connect(o.URL, o.natsOptions()...)
		}
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, o.failed(ctx, r.err)
		}
		return r.nc, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, o.failed(ctx, ctx.Err())
	}
}

// pingTries bounds how often the first connect is tried while [pinged] is its error.
const pingTries = 5

// pinged reports whether a connect failed because the server was slow: it sends its first
// PING a second or two after it accepted a connection, and if that comes before the PONG
// of the handshake, nats.go gives up. A reconnect tries again by itself.
func pinged(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "expected 'PONG', got 'PING'")
}

// MaxPayload is the largest message this connection's server takes, headers
// included, in bytes. It can change with every reconnect.
func MaxPayload(nc *nats.Conn) int { return int(nc.MaxPayload()) }

func (o *Options) natsOptions() []nats.Option {
	pace := cmp.Or(o.Pace, &Pace{})
	opts := []nats.Option{
		nats.Name(cmp.Or(o.Name, "compactd")),
		nats.Timeout(cmp.Or(o.Timeout, 5*time.Second)),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(pace.delayer()),
		nats.IgnoreAuthErrorAbort(),
		// A dead link is noticed after two answers that do not come, within 9 s. The default
		// of two minutes would take six.
		nats.PingInterval(3 * time.Second),
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	opts = append(opts, o.identity()...)
	onError := o.OnError
	if onError == nil {
		onError = func(error) {} // nats.go would print to stderr
	}
	opts = append(opts, nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
		if s != nil {
			err = fmt.Errorf("subscription %s: %w", s.Subject, err)
		}
		if errors.Is(err, nats.ErrAuthorization) {
			pace.scale(2)
		}
		onError(err)
	}))
	if o.OnDisconnect != nil {
		opts = append(opts, nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { o.OnDisconnect(err) }))
	}
	return append(opts, nats.ReconnectHandler(func(nc *nats.Conn) {
		pace.scale(.5) // the server keeps up
		if o.OnReconnect != nil {
			o.OnReconnect(nc.ConnectedUrlRedacted())
		}
	}))
}

// Target is the address as it may be shown: without passwords and tokens.
func (o *Options) Target() string {
	if o.InProcess != nil {
		return "the embedded server"
	}
	all := strings.Split(o.URL, ",")
	for i, s := range all {
		all[i] = redact(strings.TrimSpace(s))
	}
	return strings.Join(all, ",")
}

func redact(addr string) string {
	full := addr
	if !strings.Contains(full, "://") {
		full = "nats://" + full
	}
	u, err := url.Parse(full)
	if err != nil { // its password cannot be found
		return "an address that is no URL"
	}
	if _, ok := u.User.Password(); !ok && u.User != nil {
		u.User = url.User("xxxxx") // a lone user is a token
	}
	return u.Redacted()
}
