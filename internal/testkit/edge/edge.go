package edge

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
)

// Edge dials connections that it reads along.
type Edge struct {
	// Steal is called with each message id that passes.
	Steal func(id string) error
}

// Dial makes Edge a CustomDialer of nats.go.
func (e *Edge) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &conn{c, e}, nil
}

// Serve accepts connections and passes them on to an address, until l is closed.
func (e *Edge) Serve(l net.Listener, to string) error {
	for {
		from, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := e.Dial("tcp", to)
		if err != nil {
			return errors.Join(err, from.Close())
		}
		go pass(server, from)
		go pass(from, server)
	}
}

// pass copies until either side ends.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // the other side sees the end
	_ = to.Close()
}

type conn struct {
	net.Conn
	edge *Edge
}

var msgID = regexp.MustCompile(`\r\nNats-Msg-Id: ?([^\r]+)\r\n`)

// Write passes on what the client sends, after the theft.
func (c *conn) Write(b []byte) (int, error) {
	for _, found := range msgID.FindAllSubmatch(b, -1) {
		if err := c.edge.Steal(string(found[1])); err != nil {
			return 0, fmt.Errorf("steal the id %s: %w", found[1], err)
		}
	}
	return c.Conn.Write(b)
}
