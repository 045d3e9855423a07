package main

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
)

// tamper changes the first outcome with a text, in the directory of a worker
// that does not run: tamper DATA OLD NEW
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tamper DATA OLD NEW")
	}
	ctx := context.Background()
	s, err := embedded.Start(embedded.Config{Dir: filepath.Join(ts.MkAbs(args[0]), "nats")})
	ts.Check(err)
	defer s.Stop()
	nc, err := connect.Open(ctx, connect.Options{InProcess: s})
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	ts.Check(err)
	old, to, found := []byte(args[1]), []byte(args[2]), false
	var messages []*nats.Msg
	ts.Check(stream.ReadStream(ctx, js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		out := &nats.Msg{Subject: m.Subject(), Header: nats.Header{}, Data: bytes.Clone(m.Data())}
		if marker := m.Headers().Get(commit.HeaderMarker); marker != "" {
			out.Header.Set(commit.HeaderMarker, marker)
		}
		if !found && bytes.Contains(out.Data, old) {
			out.Data, found = bytes.Replace(out.Data, old, to, 1), true
		}
		messages = append(messages, out)
		return nil
	}))
	if !found {
		ts.Fatalf("no outcome holds %s", old)
	}
	ts.Check(brokertest.Recommit(ctx, js, commit.HeaderMarker, messages))
}
