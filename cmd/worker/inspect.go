package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/events"
	"compactd/internal/ops/access"
	"compactd/internal/ops/inspect"
	"compactd/internal/ops/term"
)

type inspectCmd struct {
	JSON bool `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Run prints partitions, owners, cursors, lag and ledger files, and the workers.
func (c *inspectCmd) Run(ctx context.Context, f *flags) error {
	f.optional = `"` + events.SubjectFleet + `"`
	return f.withLog(ctx, func(js jetstream.JetStream) error {
		r, err := inspect.Describe(ctx, js, filepath.Join(f.Data, "ledgers"))
		if err != nil {
			return err
		}
		return f.show(c.JSON, r)
	})
}

type doctorCmd struct {
	JSON  bool     `env:"COMPACTD_JSON" help:"Print JSON."`
	Files []string `arg:"" optional:"" type:"existingfile" name:"file" help:"Configuration of nats-server, to look for users with an empty password."`
}

// errProblems: the findings describe them.
var errProblems = errors.New("there are problems; the findings have hints")

// Run prints what is as it should be and what is not. A problem is a failure.
func (c *doctorCmd) Run(ctx context.Context, f *flags) error {
	p := inspect.Target{Data: f.Data, ServerFiles: c.Files, Dial: inspect.DialAs(f.With(connect.Options{Name: "compactd worker, looking"}))}
	if _, port, err := net.SplitHostPort(f.HTTP); err == nil && port != "-1" {
		p.HTTP, p.Token = reachable(f.HTTP), string(f.HTTPToken)
	}
	p.Refusals = &inspect.Refusals{}
	p.Conn, p.Unreachable = f.visit(ctx, p.Refusals.OnError)
	if e, ok := errors.AsType[*connect.Error](p.Unreachable); ok && e.Cause != connect.CauseServer {
		p.Hint = strings.TrimSuffix(access.Hint(e), ".")
	}
	if p.Conn != nil {
		defer p.Conn.Close()
	}
	d := inspect.Diagnose(ctx, p)
	return cmp.Or(f.show(c.JSON, d), unless(d.Healthy(), errProblems))
}

// withLog connects to the server of the log.
func (f *flags) withLog(ctx context.Context, fn func(jetstream.JetStream) error) error {
	nc, err := f.visit(ctx, f.stopIfDenied)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return fn(js)
}

// visit connects to the server that a worker with these flags uses, its embedded
// one included, and starts none.
func (f *flags) visit(ctx context.Context, onError func(error)) (*nats.Conn, error) {
	url := f.NATS
	if url == "" {
		url = f.Listen
		if !strings.Contains(url, ":") {
			url = "127.0.0.1:" + url
		}
		url = "nats://" + url
	}
	nc, err := connect.Open(ctx, f.With(connect.Options{URL: url, Name: "compactd worker, looking", OnError: onError}))
	if err != nil && f.NATS == "" {
		return nil, fmt.Errorf("%w (--listen HOST:PORT is where its worker listens)", err)
	}
	return nc, err
}

// stopIfDenied ends a command when the server does not let it publish or subscribe.
func (f *flags) stopIfDenied(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) && (f.optional == "" || !strings.Contains(err.Error(), f.optional)) {
		f.abort(err)
	}
}

// unless is the error of a command whose result is not as it should be.
func unless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

func (f *flags) show(asJSON bool, v interface{ Write(io.Writer) error }) error {
	if !asJSON {
		return v.Write(term.Open(os.Stdout, f.Color))
	}
	return term.JSON(v)
}
