package broker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// unanswered makes consumers, and leaves some requests unanswered: as a cluster does
// that places a consumer on a node which is cut off.
type unanswered struct {
	jetstream.JetStream
	asked  []string     // names; owned by the reader until it is stopped
	silent map[int]bool // which requests, from 0
}

func (u *unanswered) CreateConsumer(ctx context.Context, stream string, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	u.asked = append(u.asked, c.Name)
	cons, err := u.JetStream.CreateConsumer(ctx, stream, c)
	if u.silent[len(u.asked)-1] {
		return nil, context.DeadlineExceeded
	}
	return cons, err
}

// A reader whose consumer is lost, and whose requests for the next one are not answered,
// asks for others by other names, goes on where it was, and leaves no consumer behind
// (P13).
func TestReaderUnanswered(t *testing.T) {
	w := openWorld(t, t.TempDir(), Topology{Partitions: 1})
	w.turn("a", "1")
	js := &unanswered{JetStream: w.js, silent: map[int]bool{0: true, 2: true, 3: true}}
	got, told := make(chan string, 10), make(chan error, 10)
	stop, err := ConsumeLog(t.Context(), js, LogFrom{OnError: func(err error) { told <- err }}, func(m jetstream.Msg) { got <- string(m.Data()) })
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{<-got}
	for _, name := range w.consumers() {
		if err := w.js.DeleteConsumer(t.Context(), LogStream, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Fatal(err)
		}
	}
	for _, want := range []error{jetstream.ErrConsumerDeleted, errNoAnswer, errNoAnswer} {
		if err := <-told; !errors.Is(err, want) {
			t.Errorf("told is %v, not %v", err, want)
		}
	}
	w.turn("a", "2")
	w.turn("a", "3")
	seen = append(seen, <-got, <-got)
	if diff := cmp.Diff([]string{"1", "2", "3"}, seen); diff != "" {
		t.Error(diff)
	}
	stop()
	if names := slices.Sorted(slices.Values(js.asked)); len(names) != 5 || len(slices.Compact(names)) != 5 {
		t.Errorf("asked for %v", js.asked)
	}
	for ctx := within(t, 5*time.Second); len(w.consumers()) > 0; {
		if ctx.Err() != nil {
			t.Fatalf("left behind are %v of %v", w.consumers(), js.asked)
		}
	}
}

// consumers lists those of the log.
func (w *world) consumers() (names []string) {
	w.t.Helper()
	s, err := w.js.Stream(w.t.Context(), LogStream)
	if err != nil {
		w.t.Fatal(err)
	}
	for name := range s.ConsumerNames(w.t.Context()).Name() {
		names = append(names, name)
	}
	return names
}
