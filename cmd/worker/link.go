package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/ops/cli"
)

// link is the connection of this process to the server.
type link struct {
	server   *embedded.Server // nil when it is not embedded
	shown    string           // the address, without passwords
	topology topology.Config
	closing  atomic.Bool
	ready    atomic.Bool // the worker serves; a refusal of the server is retried from then on

	read, commit, texts, answers *nats.Conn // see worker.Config
	pace                         connect.Pace
}

func (f *flags) connect(ctx context.Context, log zerolog.Logger) (*link, error) {
	l := &link{topology: topology.Config{
		Partitions: f.Partitions, Replicas: f.Replicas, MaxBytesLog: f.MaxBytes.log, MaxBytesOutcomes: f.MaxBytes.outcomes,
	}}
	o := f.With(connect.Options{
		URL: f.NATS, Name: "compactd worker", Pace: &l.pace,
		OnError: func(err error) {
			log.Warn().Err(err).Msg("connection error")
			if !l.ready.Load() && required(err) {
				f.abort(err) // else the start would wait, and try again
			}
		},
		OnDisconnect: func(err error) {
			if ctx.Err() == nil && !l.closing.Load() { // else it is we who stop
				log.Warn().Err(err).Msg("disconnected")
			}
		},
		OnReconnect: func(url string) { log.Info().Str("nats", url).Msg("reconnected") },
	})
	if f.NATS == "" {
		s, err := embedded.Start(embedded.Config{
			Dir: f.dataOf("nats"), Listen: f.Listen, Durability: embedded.Durability(f.Durability),
			Log: serverLog(log),
		})
		if err != nil {
			return nil, err
		}
		l.server, l.shown, o.InProcess = s, s.ClientURL(), s
		l.topology.CreateBytes = s.StreamBytes()
	}
	l.shown = cmp.Or(l.shown, o.Target())
	for _, nc := range l.connections() {
		var err error
		if *nc, err = connect.Open(ctx, o); err != nil {
			l.close()
			return nil, fmt.Errorf("%w (without --nats and NATS_URL a server is embedded)", err)
		}
	}
	return l, nil
}

// required reports whether the server refused what no worker can do without. A consumer that nats.go
// makes again has no name for a moment, and a subject that ends in a dot is refused to every user.
func required(err error) bool {
	return errors.Is(err, nats.ErrPermissionViolation) && !strings.Contains(err.Error(), `."`) && slices.ContainsFunc(
		[]string{topology.LogStream, topology.OutcomesStream, topology.LeasesBucket, topology.MembersBucket},
		func(name string) bool { return strings.Contains(err.Error(), name) })
}

func (l *link) connections() []**nats.Conn {
	return []**nats.Conn{&l.read, &l.commit, &l.texts, &l.answers}
}

// close ends the connections before the server, so that none tries to come back.
func (l *link) close() {
	l.closing.Store(true)
	for _, nc := range l.connections() {
		if *nc != nil {
			(*nc).Close()
		}
	}
	if l.server != nil {
		l.server.Stop()
	}
}

// serverLog passes on the warnings and errors of the embedded server.
func serverLog(log zerolog.Logger) func(level, text string) {
	return func(level, text string) {
		if l, err := zerolog.ParseLevel(level); err == nil && l >= zerolog.WarnLevel {
			log.WithLevel(min(l, zerolog.ErrorLevel)).Str("server", text).Msg("embedded server")
		}
	}
}

// errTwoServers: both flags are explicit, so neither can be a leftover of the environment.
var errTwoServers = errors.New("--nats and --listen exclude each other: --nats connects to a server, --listen embeds one; leave one out")

// chooseServer decides between a server to connect to and an embedded one. A flag beats
// the environment: with --listen on the command line NATS_URL does not count.
func (f *flags) chooseServer(k *kong.Context) error {
	switch listen := cli.Given(k, "listen"); {
	case listen && cli.Given(k, "nats") && f.NATS != "":
		return errTwoServers
	case listen:
		f.NATS = ""
	}
	return nil
}
