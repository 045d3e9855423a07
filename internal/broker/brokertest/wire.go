package brokertest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// Wire is a TCP proxy in front of the server that can lose a request or its answer. A loss lasts
// until the link is cut.
type Wire struct {
	ln     net.Listener
	target string

	mu     sync.Mutex
	fault  Fault
	needle []byte // content of the request
	conns  []net.Conn
	hit    chan struct{} // closed when the request has passed
}

// Fault is the loss of a [Wire].
type Fault int

// Losses of a [Wire].
const (
	None        Fault = iota // nothing
	LoseRequest              // the request does not reach the server
	LoseAnswer               // the request passes, its answer does not
)

// NewWire returns a proxy in front of an address, until the test ends.
func NewWire(t *testing.T, target string) *Wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{ln: ln, target: target}
	var wg sync.WaitGroup
	wg.Go(func() { w.accept(&wg) })
	t.Cleanup(func() {
		_ = ln.Close()
		w.Cut()
		wg.Wait()
	})
	return w
}

// URL returns the address of the proxy.
func (w *Wire) URL() string { return "nats://" + w.ln.Addr().String() }

// Arm sets the fault for the next request that contains needle.
func (w *Wire) Arm(f Fault, needle string) (hit <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault, w.needle, w.hit = f, []byte(needle), make(chan struct{})
	return w.hit
}

// Cut breaks every link.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = None
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *Wire) accept(wg *sync.WaitGroup) {
	for {
		client, err := w.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		w.mu.Unlock()
		wg.Go(func() { w.copy(server, client, w.up) })
		wg.Go(func() { w.copy(client, server, w.down) })
	}
}

func (w *Wire) copy(dst, src net.Conn, pass func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && pass(buf[:n]) {
			if _, err := dst.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = src.Close()
	_ = dst.Close()
}

// up reports whether bytes of the client pass.
func (w *Wire) up(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == None {
		return true
	}
	if !w.struck() && bytes.Contains(b, w.needle) {
		close(w.hit)
	}
	return w.fault == LoseAnswer || !w.struck()
}

// down reports whether bytes of the server pass.
func (w *Wire) down([]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault == None || !w.struck()
}

// struck reports whether the request has passed. The caller holds mu.
func (w *Wire) struck() bool {
	select {
	case <-w.hit:
		return true
	default:
		return false
	}
}
