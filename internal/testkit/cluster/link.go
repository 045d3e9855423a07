package cluster

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Link is a proxy in front of one address. While it is cut its connections are
// stalled rather than closed, and new ones are closed at once.
type Link struct {
	to       string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	healed *sync.Cond // signalled when the link is healed or closed
	down   bool
	conns  map[net.Conn]bool
}

// NewLink returns a proxy in front of an address, until the test ends.
func NewLink(t testing.TB, to string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{to: to, listener: listener, conns: map[net.Conn]bool{}}
	l.healed = sync.NewCond(&l.mu)
	l.work.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// Address is where it listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

func (l *Link) accept() {
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
func (l *Link) add(a, b net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.conns[a], l.conns[b] = true, true
	return true
}

// pass copies one direction, and holds back what it reads while the link is cut.
func (l *Link) pass(from, to net.Conn) {
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

// open waits while the link is cut; false states that the connection is no more.
func (l *Link) open(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.down && l.conns[c] {
		l.healed.Wait()
	}
	return l.conns[c]
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	hangUp(c)
}

// Cut stops all traffic of the link, in both directions.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// Disconnect closes every connection.
func (l *Link) Disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeAll()
}

// Heal undoes Cut. It ends the connections that were stalled: what they held back is lost, as it
// is where a cable was cut for long.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	l.closeAll()
}

func (l *Link) closeAll() {
	for c := range l.conns {
		hangUp(c)
		delete(l.conns, c)
	}
	l.healed.Broadcast()
}

func (l *Link) close() {
	hangUp(l.listener)
	l.Heal()
	l.work.Wait()
}

// hangUp closes what may be closed already, by the other side too.
func hangUp(c io.Closer) { _ = c.Close() }
