package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
)

// Options names the server and the tenant of a client.
type Options struct {
	// URL is one address or several with commas between them; it may contain user and
	// password. Default nats://127.0.0.1:4222.
	URL string
	// Creds is the path of a .creds file; "" for none.
	Creds string
	// Conn is used instead of URL and Creds, and is left open by Close. It should
	// reconnect for ever (nats.MaxReconnects(-1)).
	Conn *nats.Conn
	// Name of the connection at the server. Default "compactd-client".
	Name string
	// Tenant of all sessions, 1 to 64 of A-Z a-z 0-9 _ -. Default "default".
	Tenant string
	// OnError is called with errors that belong to no call, such as a missing
	// permission. Must not block. Not used with Conn.
	OnError func(error)
	// OnDuplicate is called when the server reports an event as a duplicate that was sent
	// for the first time: a message of another client has its random id. The event is sent
	// again under a new id, so nothing is lost. The other client copies ids on purpose, or
	// generates bad random numbers. Must not block.
	OnDuplicate func(Duplicate)
}

// Duplicate is a message id that another client had used.
type Duplicate struct {
	Session, ID string
	Seq         uint64 // of the other client's message in the log
}

// Client is a connection to compactd.
type Client struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	tenant string
	own    bool // nc is closed with the client

	onDuplicate func(Duplicate) // nil for none

	mu    sync.Mutex // guards reads
	reads *bool      // whether the user may read the streams; nil before the first request
}

// Connect returns a client. It reconnects by itself after the first connection.
func Connect(ctx context.Context, o Options) (*Client, error) {
	c := &Client{nc: o.Conn, tenant: cmp.Or(o.Tenant, events.DefaultTenant), onDuplicate: o.OnDuplicate}
	if !events.ValidID(c.tenant) {
		return nil, typed(events.Address{Tenant: c.tenant, Session: "x"}.Validate())
	}
	var err error
	if c.nc == nil {
		c.own = true
		if c.nc, err = connect.Open(ctx, connect.Options{
			URL: o.URL, Creds: o.Creds, Name: cmp.Or(o.Name, "compactd-client"), OnError: o.OnError,
		}); err != nil {
			return nil, err
		}
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// Close ends the connection, unless it was given in Options. Sessions of the client
// can no longer publish.
func (c *Client) Close() {
	if c.own {
		c.nc.Close()
	}
}

// mayRead reports whether log and outcomes can be read. A user of one tenant may not,
// and depends on a worker.
func (c *Client) mayRead(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads == nil {
		may, err := stream.MayRead(ctx, c.nc)
		if err != nil {
			return false, err
		}
		c.reads = &may
	}
	return *c.reads, nil
}
