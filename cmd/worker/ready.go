package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

type readyCmd struct {
	Live bool `help:"Ask only whether it answers."`
}

// askedFor bounds a question: a check lasts two seconds at most.
const askedFor = 4 * time.Second

// errNotReady: what was printed says why.
var errNotReady = errors.New("the worker is not ready; the answer says why")

// Run asks the worker of these flags over HTTP, from its own machine, and prints what
// it answers: a probe for images that hold no other program.
func (c *readyCmd) Run(ctx context.Context, f *flags) error {
	if _, _, err := net.SplitHostPort(f.HTTP); err != nil {
		return fmt.Errorf("--http %s: %w; name the address that the worker listens on", f.HTTP, err)
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(f.HTTP)+path, http.NoBody)
	if err != nil {
		return err
	}
	if f.HTTPToken != "" {
		r.Header.Set("Authorization", "Bearer "+f.HTTPToken)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("%w; does a worker run, with this --http?", err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, io.LimitReader(answer.Body, 1<<20)); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", answer.Status, errNotReady)
	}
	return nil
}
