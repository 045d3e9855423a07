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

// Options are the address, credentials and callbacks of a connection.
type Options struct {
	// URL is one or more addresses, separated by commas. It may contain user and
	// password. Default nats://127.0.0.1:4222. Not used with InProcess.
	URL string
	// Creds is the path of a .creds file; "" for none.
	Creds string
	// User and Password authenticate at the server. "" uses those of the URL, if any.
	User, Password string
	// CA, Cert and Key are paths of PEM files; "" for none. With CA the link is encrypted,
	// and the server's certificate must be signed by this authority. Cert and
	// Key are for a server that requires certificates of its clients.
	CA, Cert, Key string
	// Name is the name of the connection at the server. Default "compactd".
	Name string
	// InProcess is an embedded server, such as an embedded.Server, which is reached without a
	// socket.
	InProcess nats.InProcessConnProvider
	// Timeout bounds the first connect, and every dial after it. Default 5 s.
	Timeout time.Duration
	// Pace spaces the reconnects. The connections of a process to one server should share it.
	// Default: a separate one.
	Pace *Pace

	// OnError receives asynchronous errors: a slow subscription, a missing permission. It must
	// not block.
	OnError func(error)
	// OnDisconnect is called when the link is lost; the error may be nil.
	OnDisconnect func(error)
	// OnReconnect receives the address, without password, after a reconnect.
	OnReconnect func(url string)
}

// Open opens a connection that reconnects until it is closed, even after refused
// credentials. Only the first connect can fail, with a [*Error].
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

// pingTries limits the attempts of the first connect while [pinged] accepts the error.
const pingTries = 5

// pinged reports whether a connect failed because the server was slow. The server sends its first
// PING a second or two after it accepts a connection, and nats.go gives up if the PING arrives before
// the PONG of the handshake. Only the first connect needs this: a reconnect retries by itself.
func pinged(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "expected 'PONG', got 'PING'")
}

// MaxPayload returns the server's limit for a message with its headers, in bytes. It can change
// with every reconnect.
func MaxPayload(nc *nats.Conn) int { return int(nc.MaxPayload()) }

func (o *Options) natsOptions() []nats.Option {
	pace := cmp.Or(o.Pace, &Pace{})
	opts := []nats.Option{
		nats.Name(cmp.Or(o.Name, "compactd")),
		nats.Timeout(cmp.Or(o.Timeout, 5*time.Second)),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(pace.delayer()),
		nats.IgnoreAuthErrorAbort(),
		// Two missing answers reveal a broken link, within 9 s. The default interval of two
		// minutes would take six minutes.
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

// Target returns the address without passwords and tokens.
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
	u, err := parseURL(addr)
	if err != nil { // its password cannot be found
		return "an address that is no URL"
	}
	if _, ok := u.User.Password(); !ok && u.User != nil {
		u.User = url.User("xxxxx") // a lone user is a token
	}
	return u.Redacted()
}
