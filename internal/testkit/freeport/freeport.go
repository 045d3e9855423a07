package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are given from lowest up to lowest + blocks*size, which is below the kernel's
// range for outgoing connections (32768 on Linux, 49152 elsewhere).
const (
	lowest = 10_000
	blocks = 220
	size   = 100
)

// Address is one of loopback, host:port, that no process listens at. It is given again only
// when the process has requested about a hundred others.
func Address() (string, error) {
	b, err := reserved()
	if err != nil {
		return "", err
	}
	return b.next()
}

// block is size ports; its first is listened at for as long as the process runs, so
// that others find it taken.
type block struct {
	sign  net.Listener
	first int

	mu    sync.Mutex
	given int
}

var reserved = sync.OnceValues(func() (*block, error) {
	for _, i := range rand.Perm(blocks) {
		first := lowest + i*size
		if l, err := net.Listen("tcp", loopback(first)); err == nil {
			return &block{sign: l, first: first}, nil
		}
	}
	return nil, errors.New("no block of free ports on 127.0.0.1")
})

func (b *block) next() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range size - 1 {
		b.given = b.given%(size-1) + 1
		at := loopback(b.first + b.given)
		if l, err := net.Listen("tcp", at); err == nil {
			return at, l.Close()
		}
	}
	return "", fmt.Errorf("no free port from %d to %d", b.first+1, b.first+size-1)
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
