package client

import (
	"io"
	"net"
	"sync"
	"testing"
)

// oneWay is a proxy that can drop what the server sends.
type oneWay struct {
	to       string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	drop  bool
	conns []net.Conn
}

func newOneWay(t *testing.T, to string) *oneWay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &oneWay{to: to, listener: listener}
	l.work.Go(l.accept)
	t.Cleanup(func() {
		listener.Close()
		l.heal()
		l.work.Wait()
	})
	return l
}

func (l *oneWay) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil {
			from.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, from, to)
		l.mu.Unlock()
		l.work.Go(func() { _, _ = io.Copy(to, from); to.Close() })
		l.work.Go(func() { _, _ = io.Copy(dropping{l, from}, to); from.Close() })
	}
}

// mute drops what the server sends from now on.
func (l *oneWay) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop = true
}

// heal ends the connections, so that new ones are made.
func (l *oneWay) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop = false
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// dropping is a connection to an agent whose writes are dropped after mute.
type dropping struct {
	l  *oneWay
	to net.Conn
}

func (w dropping) Write(b []byte) (int, error) {
	w.l.mu.Lock()
	drop := w.l.drop
	w.l.mu.Unlock()
	if drop {
		return len(b), nil
	}
	return w.to.Write(b)
}
