package transport

import (
	"compress/gzip"
	"io"
	"iter"
	"sync"
)

// gunzip decompresses data as it arrives: no byte waits for later ones.
type gunzip struct {
	mu   sync.Mutex // guards the fields below: a body may be closed while it is read
	in   []byte     // that has come
	next func() (struct{}, bool)
	stop func()
}

// newGunzip passes on decompressed bytes.
func newGunzip(read func([]byte)) *gunzip {
	g := &gunzip{}
	g.next, g.stop = iter.Pull(func(more func(struct{}) bool) {
		z, err := gzip.NewReader(source(func(p []byte) (int, error) {
			for len(g.in) == 0 {
				if !more(struct{}{}) {
					return 0, io.EOF
				}
			}
			n := copy(p, g.in)
			g.in = g.in[n:]
			return n, nil
		}))
		for p := make([]byte, 4<<10); err == nil; {
			var n int
			n, err = z.Read(p)
			read(p[:n])
		}
	})
	return g
}

// feed takes the next bytes, and returns when all that they contain was passed on.
func (g *gunzip) feed(p []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in = p
	g.next()
}

func (g *gunzip) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop()
}

type source func([]byte) (int, error)

func (s source) Read(p []byte) (int, error) { return s(p) }
