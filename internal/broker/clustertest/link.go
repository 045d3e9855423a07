package clustertest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// link is a proxy in front of one address. While it is cut its connections are
// silent rather than closed, and new ones are closed at once.
type link struct {
	to       string
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	mend  *sync.Cond // signalled when the link is healed or closed
	down  bool
	conns map[net.Conn]bool
}

func newLink(t testing.TB, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{to: to, listener: listener, conns: map[net.Conn]bool{}}
	l.mend = sync.NewCond(&l.mu)
	l.work.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil {
			hangUp(from)
			continue
		}
		if !l.add(from, to) {
			hangUp(from)
			hangUp(to)
			continue
		}
		l.work.Go(func() { l.pass(from, to) })
		l.work.Go(func() { l.pass(to, from) })
	}
}

// add keeps two ends of a connection, unless the link is cut.
func (l *link) add(a, b net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.conns[a], l.conns[b] = true, true
	return true
}

// pass copies one direction, and holds back what it reads while the link is cut.
func (l *link) pass(from, to net.Conn) {
	defer l.drop(from)
	defer l.drop(to)
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && l.open(from) {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// open waits while the link is cut; false says that the connection is no more.
func (l *link) open(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.down && l.conns[c] {
		l.mend.Wait()
	}
	return l.conns[c]
}

func (l *link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	hangUp(c)
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// disconnect closes every connection.
func (l *link) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeAll()
}

// heal ends the connections that were silent: what they held back is lost, as it
// is where a cable was cut for long.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	l.closeAll()
}

func (l *link) closeAll() {
	for c := range l.conns {
		hangUp(c)
		delete(l.conns, c)
	}
	l.mend.Broadcast()
}

func (l *link) close() {
	hangUp(l.listener)
	l.heal()
	l.work.Wait()
}

// hangUp closes what may be closed already, by the other side too.
func hangUp(c io.Closer) { _ = c.Close() }
