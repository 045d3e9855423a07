package compress

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/coord"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// A request holds no processor while the server looks up or keeps what is known of a history: all other requests
// would wait for a slow server, too.
func TestSlowServerHoldsNoProcessor(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	requests := make(chan string, 1000)
	if _, err := nc.Subscribe(">", func(m *nats.Msg) { // it never answers
		if m.Reply != "" {
			requests <- m.Subject
		}
	}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s := &Compressor{prefixes: coord.NewPrefixes(js), onError: func(error) {}}
	at, h := events.Address{Tenant: "acme", Session: "s"}, &history{}
	h.add(1, events.Digest{1})
	for name, call := range map[string]func(context.Context){
		"find":       func(ctx context.Context) { _, _ = s.find(ctx, "acme", h) },
		"remember":   func(ctx context.Context) { s.remember(ctx, "acme", "s", h, found{}) },
		"usage":      func(ctx context.Context) { s.usage(ctx, at) },
		"save usage": func(ctx context.Context) { _ = s.SaveUsage(ctx, at, &events.UsageRequest{}) },
	} {
		t.Run(name, func(t *testing.T) {
			rested := make(chan struct{}, 10)
			l := limit.New(limit.Config{OnChange: func(c limit.Class, held int64) {
				if c == limit.Quick && held == 0 {
					rested <- struct{}{}
				}
			}})
			ctx, end := context.WithCancel(t.Context())
			o := l.Begin(limit.Account{Tenant: "acme"})
			defer o.End()
			if err := o.ComputeOver(ctx, 0); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); call(o.With(ctx)) }()
			select {
			case <-requests:
			case <-ended:
				t.Fatal("there was no request")
			}
			end()
			<-ended
			if len(rested) == 0 {
				t.Error("a processor is held")
			}
		})
	}
}
