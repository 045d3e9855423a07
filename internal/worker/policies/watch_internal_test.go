package policies

import (
	"context"
	"testing"
	"time"

	"compactd/internal/broker/brokertest"
	"compactd/internal/compaction"
)

// A watch replaces the former one while that receives a change: the end of the former waits for its handler.
func TestWatchAgainDuringChange(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	p := New(Config{
		JS:     w.JS,
		Lay:    func(map[string][]byte) (*compaction.Config, map[string]error, error) { return nil, nil, nil },
		Apply:  func(context.Context, *compaction.Config) error { return nil },
		Report: func(err error) { t.Error(err) },
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	former, ctx := p.stop, brokertest.Within(t, time.Minute)
	p.stop = func() {
		if err := p.store.Save(ctx, "acme", []byte("{}")); err != nil {
			t.Error(err)
		}
		select {
		case <-p.changed:
			former()
		case <-ctx.Done():
			t.Error("a handler waits for the start, which waits for the handler")
		}
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	p.stop()
}
