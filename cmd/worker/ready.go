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
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(f.HTTP)+path, http.NoBody)
	if err != nil {
		return err
	}
	if f.HTTPToken != "" {
		r.Header.Set("Authorization", "Bearer "+string(f.HTTPToken))
	}
	direct := http.Client{Transport: &http.Transport{}} // a proxy would get the token unencrypted
	answer, err := direct.Do(r)
	if err != nil {
		return fmt.Errorf("%w; does a worker run, with this --http?", err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, io.LimitReader(answer.Body, 1<<20)); err != nil {
		return err
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return errToken
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", answer.Status, errNotReady)
	}
	return nil
}
