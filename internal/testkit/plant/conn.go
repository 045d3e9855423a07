package plant

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// Conn is a plain connection to a server, which sends what it is given.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// answerTime bounds every wait for the server.
const answerTime = time.Minute

// Dial connects to a nats:// address, which may hold user and password. With config the
// connection is encrypted.
func Dial(address string, config *tls.Config) (*Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn, bufio.NewReader(conn)}
	if err := c.greet(u, config); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// inboxes begin the subject that the acknowledgements of a connection arrive at.
const inboxes = "_INBOX.planted."

func (c *Conn) greet(u *url.URL, config *tls.Config) error {
	if _, err := c.in.ReadString('\n'); err != nil { // INFO
		return err
	}
	if config != nil {
		secure := tls.Client(c.conn, config)
		if err := secure.Handshake(); err != nil {
			return err
		}
		c.conn, c.in = secure, bufio.NewReader(secure)
	}
	password, _ := u.User.Password()
	hello, err := json.Marshal(map[string]any{
		"verbose": false, "headers": true, "no_responders": true, "lang": "go", "version": "1",
		"user": u.User.Username(), "pass": password,
	})
	if err != nil {
		return err
	}
	return c.send("CONNECT %s\r\nSUB %s 1\r\n", hello, c.inbox())
}

// inbox is of this connection alone.
func (c *Conn) inbox() string {
	return inboxes + strings.NewReplacer(".", "-", ":", "-").Replace(c.conn.LocalAddr().String())
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Publish stores one message and returns its sequence. block is the block of its headers as
// it goes over the wire; "" for a message without.
func (c *Conn) Publish(subject, block, body string) (seq uint64, err error) {
	if block == "" {
		err = c.send("PUB %s %s %d\r\n%s\r\n", subject, c.inbox(), len(body), body)
	} else {
		err = c.send("HPUB %s %s %d %d\r\n%s%s\r\n", subject, c.inbox(), len(block), len(block)+len(body), block, body)
	}
	if err != nil {
		return 0, err
	}
	var ack struct {
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	answer, err := c.answer()
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(answer, &ack); err != nil {
		return 0, fmt.Errorf("answer %q: %w", answer, err)
	}
	if ack.Error != nil {
		return 0, errors.New(ack.Error.Description)
	}
	if ack.Duplicate {
		return 0, ErrDuplicate
	}
	return ack.Seq, nil
}

// ErrDuplicate: the server took the message for one that it has, by the id in its headers.
var ErrDuplicate = errors.New("a duplicate")

func (c *Conn) send(format string, v ...any) error {
	_, err := fmt.Fprintf(c.conn, format, v...)
	return err
}

// answer waits for the next message.
func (c *Conn) answer() ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
		return nil, err
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		verb, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		switch verb {
		case "PING":
			if err := c.send("PONG\r\n"); err != nil {
				return nil, err
			}
		case "-ERR":
			return nil, errors.New(rest)
		case "MSG", "HMSG":
			var n int
			if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &n); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			body := make([]byte, n+2)
			if _, err := io.ReadFull(c.in, body); err != nil {
				return nil, err
			}
			if verb == "HMSG" {
				return nil, fmt.Errorf("%s: %q", line, body)
			}
			return body[:n], nil
		}
	}
}
