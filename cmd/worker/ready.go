package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"compactd/internal/ops/inspect"
)

type readyCmd struct {
	Live bool `help:"Check only whether it answers."`
}

// probeTimeout bounds the request: a check lasts two seconds at most.
const probeTimeout = 4 * time.Second

// errNotReady: the printed answer has the reason.
var errNotReady = errors.New("the worker is not ready; the answer has the reason")

// errToken: whether the worker is ready is not known.
var errToken = errors.New("the token of the worker is missing, or another one: set COMPACTD_HTTP_TOKEN or --http-token-file as the worker has it")

// Run sends a request to the worker of these flags over HTTP, from its own machine, and
// prints the answer: a probe for images without other programs.
func (c *readyCmd) Run(ctx context.Context, f *flags) error {
	if _, _, err := net.SplitHostPort(f.HTTP); err != nil {
		return fmt.Errorf("--http %s: %w; name the address that the worker listens on", f.HTTP, err)
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	status, body, err := inspect.Get(ctx, "http://"+reachable(f.HTTP)+path, string(f.HTTPToken))
	if err != nil {
		return fmt.Errorf("%w; does a worker run, with this --http?", err)
	}
	if _, err := os.Stdout.Write(body); err != nil {
		return err
	}
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized:
		return errToken
	}
	return fmt.Errorf("%d %s: %w", status, http.StatusText(status), errNotReady)
}
