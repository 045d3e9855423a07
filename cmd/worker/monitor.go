package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/tracing"
)

// defaultHTTP may be in use by another worker of this machine, or by a server's
// own monitoring.
const defaultHTTP = "127.0.0.1:8223"

// monitor answers over HTTP; the zero value is off.
type monitor struct {
	*worker.Monitor
	stop func()
}

// startMonitor takes the port and answers from then on, until stop.
func (f *flags) startMonitor(ctx context.Context, log zerolog.Logger) (monitor, error) {
	if f.HTTP == "" || f.HTTP == "-1" || f.HTTP == "off" {
		return monitor{stop: func() {}}, nil
	}
	if f.tokenInArgs {
		log.Warn().Str("hint", "Set it as COMPACTD_HTTP_TOKEN, or in a file with --http-token-file.").
			Msg("--http-token is on the command line, where every user of this machine can read it")
	}
	c := worker.MonitorConfig{Listen: f.HTTP, Token: string(f.HTTPToken), Data: f.Data, Version: version}
	m, err := worker.NewMonitor(c)
	if f.HTTP == defaultHTTP && errors.Is(err, syscall.EADDRINUSE) {
		c.Listen = net.JoinHostPort("127.0.0.1", "-1")
		if m, err = worker.NewMonitor(c); err == nil {
			log.Warn().Str("http", m.Addr()).Msg("the default --http is in use, took another port")
		}
	}
	if err != nil {
		return monitor{}, fmt.Errorf("--http: %w%s", err, portHint(err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // to the end of the stop
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil {
			log.Error().Err(err).Msg("http ended")
		}
	})
	return monitor{m, func() { cancel(); running.Wait() }}, nil
}

// readToken takes the token of --http-token-file.
func (f *flags) readToken(k *kong.Context) error {
	f.tokenInArgs = cli.Given(k, "http-token")
	if f.HTTPTokenFile == "" {
		return nil
	}
	if f.HTTPToken != "" {
		return errors.New("--http-token and --http-token-file are both set: leave one out")
	}
	text, err := os.ReadFile(string(f.HTTPTokenFile))
	if err != nil {
		return fmt.Errorf("--http-token-file: %w", err)
	}
	if f.HTTPToken = access.Secret(strings.TrimSpace(string(text))); f.HTTPToken == "" {
		return fmt.Errorf("--http-token-file: %s is empty", f.HTTPTokenFile)
	}
	return nil
}

func portHint(err error) string {
	if errors.Is(err, syscall.EADDRINUSE) {
		return "; choose another --http (port -1 picks a free one, off is none)"
	}
	return ""
}

// listener passes the events of the worker to the monitor.
func (m monitor) listener() observe.Listener {
	if m.Monitor == nil {
		return observe.Listener{}
	}
	return m.Listener()
}

func (m monitor) watch(ctx context.Context, w *worker.Worker) error {
	if m.Monitor == nil {
		return nil
	}
	return m.Watch(w, ctx.Done())
}

// addr is the address of the monitor; "" when it is off.
func (m monitor) addr() string {
	if m.Monitor == nil {
		return ""
	}
	return m.Addr()
}

// startTraces exports spans until stop, if a receiver is named; else the tracer is nil.
func (f *flags) startTraces(ctx context.Context, log zerolog.Logger) (t observe.Tracer, stop func(), err error) {
	to := cmp.Or(f.Traces, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if to == "" {
		return nil, func() {}, nil
	}
	exported, err := tracing.Start(ctx, tracing.Config{URL: to, Headers: os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), Version: version, OnError: func(err error) {
		log.Warn().Err(err).Str("hint", "Is a receiver of OTLP over HTTP running there? Spans that it does not take are lost, and nothing else.").Msg("spans are not exported")
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("--traces: %w", err)
	}
	return exported, exported.Stop, nil
}
