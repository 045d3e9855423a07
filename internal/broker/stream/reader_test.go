package stream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
)

// unanswered makes consumers, and leaves some requests unanswered: as a cluster does
// that places a consumer on a node which is cut off.
type unanswered struct {
	jetstream.JetStream
	dropped map[int]bool // which requests, from 0

	mu    sync.Mutex // guards names
	names []string   // of the requests
}

func (u *unanswered) CreateConsumer(ctx context.Context, stream string, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	u.mu.Lock()
	dropped := u.dropped[len(u.names)]
	u.names = append(u.names, c.Name)
	u.mu.Unlock()
	cons, err := u.JetStream.CreateConsumer(ctx, stream, c)
	if dropped {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return cons, err
}

// A reader whose consumer is lost, and whose requests for the next one are not answered,
// requests others by other names, goes on where it was, and leaves no consumer behind
// (P13).
func TestReaderUnanswered(t *testing.T) {
	t.Parallel()
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	w.Turn("a", "1")
	js := &unanswered{JetStream: w.JS, dropped: map[int]bool{0: true, 2: true}}
	got, reported := make(chan string, 10), make(chan error, 10)
	stop, err := ConsumeLog(t.Context(), js, LogFrom{Partitions: []int{0}, OnError: func(err error) { reported <- err }}, func(m jetstream.Msg) { got <- string(m.Data()) })
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{<-got}
	for _, name := range w.consumers() {
		if err := w.JS.DeleteConsumer(t.Context(), topology.LogStream, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Fatal(err)
		}
	}
	if err := <-reported; !errors.Is(err, jetstream.ErrConsumerDeleted) {
		t.Errorf("reported: %v", err)
	}
	w.Turn("a", "2")
	w.Turn("a", "3")
	seen = append(seen, <-got, <-got)
	if diff := cmp.Diff([]string{"1", "2", "3"}, seen); diff != "" {
		t.Error(diff)
	}
	stop()
	if names := slices.Sorted(slices.Values(js.names)); len(names) < 4 || len(slices.Compact(names)) != len(names) {
		t.Errorf("requested: %v", js.names)
	}
	for ctx := brokertest.Within(t, time.Minute); len(w.consumers()) > 0; {
		if ctx.Err() != nil {
			t.Fatalf("left behind are %v of %v", w.consumers(), js.names)
		}
	}
}

// consumers lists those of the log.
func (w *env) consumers() (names []string) {
	w.T.Helper()
	s, err := w.JS.Stream(w.T.Context(), topology.LogStream)
	if err != nil {
		w.T.Fatal(err)
	}
	for name := range s.ConsumerNames(w.T.Context()).Name() {
		names = append(names, name)
	}
	return names
}
