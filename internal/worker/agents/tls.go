package agents

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate is a certificate that is read again after a change of its files.
type certificate struct {
	cert, key string
	onError   func(error)

	mu      sync.Mutex // guards the fields below
	current *tls.Certificate
	state   [2]fileState
	next    time.Time // of the next check of the files
}

// newTLS serves the certificate of two PEM files.
func newTLS(cert, key string, onError func(error)) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key, onError: onError}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}, nil
}

// get returns the certificate in force.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.next) {
		c.next = now.Add(reloadEvery)
		if err := c.read(); err != nil {
			c.onError(err)
		}
	}
	return c.current
}

// read reads the files if they have changed. After an error the earlier certificate stays in force.
func (c *certificate) read() error {
	var state [2]fileState
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		state[i] = stateOf(info)
	}
	if c.current != nil && state == c.state {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	c.current, c.state = &pair, state
	return nil
}
