package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"compactd/internal/broker/connect"
	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
)

// agentsFlags are those of the listener for agents.
type agentsFlags struct {
	Agents         string        `name:"agents" env:"COMPACTD_AGENTS" default:"off" placeholder:"HOST:PORT" help:"Where agents publish and receive over HTTP, each with a token; off is none (${default})."`
	AgentsTokens   string        `name:"agents-tokens" env:"COMPACTD_AGENTS_TOKENS" placeholder:"FILE" help:"Who may use --agents: a line for each token, as worker token new writes it. Read again when it changes, and at SIGHUP."`
	AgentsKey      access.File   `name:"agents-signing-key" env:"COMPACTD_AGENTS_SIGNING_KEY" placeholder:"FILE" help:"Key of 32 bytes or more, the same for all workers, that signs short-lived tokens of sessions; a tenant's token requests them. Absent: none are signed."`
	AgentsTLSCert  access.File   `name:"agents-tls-cert" env:"COMPACTD_AGENTS_TLS_CERT" placeholder:"FILE" help:"Certificate of --agents, PEM, with --agents-tls-key. Read again when it changes. Absent: no TLS."`
	AgentsTLSKey   access.File   `name:"agents-tls-key" env:"COMPACTD_AGENTS_TLS_KEY" placeholder:"FILE" help:"Key of the certificate of --agents, PEM."`
	AgentsOrigin   []string      `name:"agents-origin" env:"COMPACTD_AGENTS_ORIGIN" placeholder:"ORIGIN" help:"Origin of pages that may use --agents in a browser, such as https://app.example. Can be repeated. Absent: none."`
	AgentsRate     int           `name:"agents-rate" env:"COMPACTD_AGENTS_RATE" default:"${agentsRate}" placeholder:"N" help:"Requests a second of one token, twice as many at once (${default})."`
	AgentsCreds    access.File   `name:"agents-creds" env:"COMPACTD_AGENTS_CREDS" placeholder:"FILE" help:"Credentials of the NATS user that publishes for agents, with the permissions of edge in deploy/cluster. Absent: the worker's own user."`
	AgentsUser     string        `name:"agents-user" env:"COMPACTD_AGENTS_USER" placeholder:"NAME" help:"The same for a user with a password, as edge in deploy/cluster."`
	AgentsPassword access.Secret `name:"agents-password" env:"COMPACTD_AGENTS_PASSWORD" placeholder:"TEXT" help:"Password of --agents-user; in the environment no other user of this machine can read it."`
}

func (a *agentsFlags) off() bool { return a.Agents == "" || a.Agents == "-1" || a.Agents == "off" }

// forAgents is the connection that publishes for agents: of --agents-creds or --agents-user, else
// the worker's.
func (f *flags) forAgents(ctx context.Context, log zerolog.Logger, l *link) (publish *nats.Conn, done func(), err error) {
	if f.AgentsCreds == "" && f.AgentsUser == "" {
		return l.read, func() {}, nil
	}
	o := f.With(connect.Options{URL: f.NATS, Name: "compactd agents", Pace: &l.pace, OnError: func(err error) { log.Warn().Err(err).Msg("connection error") }})
	o.Creds, o.User, o.Password = string(f.AgentsCreds), f.AgentsUser, string(f.AgentsPassword)
	if l.server != nil {
		o.InProcess = l.server
	}
	if publish, err = connect.Open(ctx, o); err != nil {
		return nil, nil, fmt.Errorf("connect as the user that publishes for agents: %w", err)
	}
	return publish, publish.Close, nil
}

// startEdge takes the port and answers until stop.
func (f *flags) startEdge(ctx context.Context, log zerolog.Logger, w *worker.Worker, reg prometheus.Registerer) (stop func(), addr string, err error) {
	if f.off() {
		return func() {}, "", nil
	}
	if f.AgentsTokens == "" {
		return nil, "", errors.New("--agents needs --agents-tokens FILE: " + cli.Program("worker") + " token new --tenant NAME --agents-tokens FILE writes one")
	}
	e, err := agents.New(agents.Config{
		Listen: f.Agents, Tokens: f.AgentsTokens, SigningKey: string(f.AgentsKey), Cert: string(f.AgentsTLSCert), Key: string(f.AgentsTLSKey),
		Origins: f.AgentsOrigin, Rate: f.AgentsRate, Version: version, Registerer: reg, Service: w.Service(), Hub: w.Events(),
		OnError: func(err error) { log.Warn().Err(err).Msg("agents") },
	})
	if err != nil {
		return nil, "", fmt.Errorf("--agents: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			log.Error().Err(err).Msg("agents ended")
		}
	})
	running.Go(func() { reloadAtHUP(ctx, e, log) })
	return func() { cancel(); running.Wait() }, e.Addr(), nil
}

// reloadAtHUP reads the tokens again at each SIGHUP.
func reloadAtHUP(ctx context.Context, e *agents.Edge, log zerolog.Logger) {
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hups:
		}
		if err := e.Reload(); err != nil {
			log.Warn().Err(err).Msg("agents")
			continue
		}
		log.Info().Msg("tokens read again")
	}
}
