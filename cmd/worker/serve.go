package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/disk"
	"compactd/internal/memory"
	"compactd/internal/worker"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// requestsDivisor divides the memory for the work: the quotient is for requests, their bodies and answers.
const requestsDivisor = 2

type serveCmd struct{}

// Run serves until ctx ends. A signal before it serves is not a failure.
func (*serveCmd) Run(ctx context.Context, f *flags, log zerolog.Logger) error {
	defer f.limitStop(ctx, log)()
	err := f.serve(ctx, log)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		log.Info().Msg("stopped")
		return nil
	}
	return err
}

func (f *flags) serve(ctx context.Context, log zerolog.Logger) error {
	memoryShare := f.limitMemory()
	go memory.Release(ctx)
	if err := disk.Private(f.Data, f.dataOf("nats"), f.dataOf("ledgers")); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	mon, err := f.startMonitor(ctx, log)
	if err != nil {
		return err
	}
	defer mon.stop()
	tracer, stopTraces, err := f.startTraces(ctx, log)
	if err != nil {
		return err
	}
	defer stopTraces()
	link, err := f.connect(ctx, log)
	if err != nil {
		return err
	}
	defer link.close()
	js, err := jetstream.New(link.read)
	if err != nil {
		return err
	}
	streams, err := topology.Ensure(ctx, js, link.topology)
	if err != nil {
		return err
	}
	publish, closePublish, err := f.forAgents(ctx, log, link)
	if err != nil {
		return err
	}
	defer closePublish()
	config := f.workerConfig(link, mon, memoryShare)
	config.Publish, config.Streams, config.Summarizer, config.Tracer = publish, streams, f.summarizer(js), tracer
	config.Listener = observe.Tee(observe.LogListener(log), mon.listener())
	w, err := worker.New(config)
	if err != nil {
		return err
	}
	if err := mon.watch(ctx, w); err != nil {
		return err
	}
	stopEdge, agentsAddr, err := f.startEdge(ctx, log, w, mon.Registerer())
	if err != nil {
		return err
	}
	defer stopEdge()
	go func() {
		select {
		case <-w.Ready():
			link.ready.Store(true)
			f.announceReady(log, link, streams, mon.addr(), agentsAddr)
		case <-ctx.Done():
		}
	}()
	return w.Run(ctx)
}

// workerConfig is the part of the worker's config that the flags set.
func (f *flags) workerConfig(l *link, mon monitor, memoryShare int64) worker.Config {
	return worker.Config{
		Read: l.read, Commit: l.commit, Texts: l.texts, Answers: l.answers, Compaction: f.settings.Config,
		Dir: f.dataOf("ledgers"), Sync: f.Durability == string(embedded.DurablePower),
		Limiter: limit.New(limit.Config{Memory: memoryShare / requestsDivisor, Registerer: mon.Registerer()}),
		Memory:  memoryShare, MaxLedgers: f.MaxLedgers, OutcomeBytes: int64(f.TenantOutcomesPerHour),
		SnapshotEvery: f.SnapshotEvery, LeaseTTL: f.LeaseTTL, DrainTimeout: f.DrainTimeout, Owner: owner(),
		Writers: f.writers, Version: version, HTTP: mon.addr(), WhatIf: f.whatIf, Policies: f.lay,
	}
}

// announceReady reports that the worker serves, to the log and to the user.
func (f *flags) announceReady(log zerolog.Logger, l *link, streams *topology.Streams, httpAddr, agentsAddr string) {
	at := map[string]any{}
	if agentsAddr != "" {
		at["agents"] = agentsAddr
	}
	log.Info().Fields(at).Str("nats", l.shown).Int("partitions", streams.Partitions.Count()).Str("config", f.settings.Config.Hash()).
		Str("summarizer", modelNames(f.models)).Str("http", httpAddr).Str("version", version).Msg("ready")
	f.openConsole(log, httpAddr)
	if f.onReady != nil {
		f.onReady(agentsAddr)
	} else if f.LogFormat == "console" {
		f.printTry(os.Stderr, os.Args[0], l.shown, httpAddr)
	}
}

// owner names this process among all there ever were.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
}

// limitStop logs when a signal stops the worker, and ends the process if the stop takes
// longer than --drain-timeout, as on a disk that does not answer: what is not committed is
// decided again at the next start. The caller calls done when the stop has ended.
func (f *flags) limitStop(ctx context.Context, log zerolog.Logger) (done func()) {
	ended := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		log.Info().Str("within", f.DrainTimeout.String()).Msg("stopping")
		select {
		case <-ended:
		case <-time.After(f.DrainTimeout):
			log.Error().Str("hint", "Nothing is lost: the next start decides again what was not committed.").Msg("the stop ran out of time")
			os.Exit(1)
		}
	})
	return func() { unwatch(); close(ended) }
}
