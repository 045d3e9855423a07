package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// partitionOf reads the partition that session s of tenant t belongs to.
func (w *env) partitionOf(seq uint64) int {
	w.T.Helper()
	got, err := GetLog(w.T.Context(), w.NC, []uint64{seq})
	if err != nil {
		w.T.Fatal(err)
	}
	l, err := events.ParseLog(got[0].Subject)
	if err != nil {
		w.T.Fatal(err)
	}
	return l.Partition
}

// The reader gives one partition in order, goes on across a restart of the
// server, and delivers nothing once it was stopped.
func TestConsumeLog(t *testing.T) {
	dir := t.TempDir()
	w := openEnv(t, dir, topology.Config{Partitions: 1})
	addr := strings.TrimPrefix(w.Srv.ClientURL(), "nats://")
	for i := range 5 {
		w.Turn("a", fmt.Sprint(i+1))
	}
	nc, err := connect.Open(t.Context(), connect.Options{URL: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	got := make(chan string, 100)
	stop, err := ConsumeLog(t.Context(), brokertest.NewJS(t, nc), LogFrom{Partitions: []int{0}, Seq: 3}, func(m jetstream.Msg) { got <- m.Subject() + " " + string(m.Data()) })
	if err != nil {
		t.Fatal(err)
	}
	for i := 3; i <= 5; i++ {
		if s := <-got; s != fmt.Sprintf("log.0.turn.t.a %d", i) {
			t.Errorf("got %s, not %d", s, i)
		}
	}
	w.NC.Close()
	w.Srv.Stop()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	w.Srv = srv
	w.NC = w.Connect(connect.Options{})
	w.JS = brokertest.NewJS(t, w.NC)
	w.Turn("a", "6")
	if s := <-got; s != "log.0.turn.t.a 6" {
		t.Errorf("after the restart: %s", s)
	}
	stop()
	w.Turn("a", "7")
	if _, err := GetLog(t.Context(), nc, []uint64{7}); err != nil { // passes the reader's connection
		t.Fatal(err)
	}
	select {
	case s := <-got:
		t.Errorf("after stop: %s", s)
	default:
	}
}

// stop waits for the callback that is running.
func TestConsumeLogStop(t *testing.T) {
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	w.Turn("a", "1")
	entered, leave := make(chan bool), make(chan bool)
	left := false // owned by the callback until stop returns
	stop, err := ConsumeLog(t.Context(), w.JS, LogFrom{Partitions: []int{0}}, func(jetstream.Msg) {
		entered <- true
		<-leave
		left = true
	})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	stopped := make(chan bool)
	go func() { stop(); stopped <- true }()
	select {
	case <-stopped:
		t.Error("stop did not wait")
	case leave <- true:
		<-stopped
	}
	if !left {
		t.Error("the callback had not ended")
	}
}

// A start one past the end waits for what comes; one further is refused. The
// server takes it, and a filter on the subject of agents, without a word.
func TestConsumeLogStart(t *testing.T) {
	w := newEnv(t)
	seq := w.Turn("a", "1")
	p := w.partitionOf(seq)
	for _, from := range []uint64{seq + 2, 1 << 40} {
		_, err := ConsumeLog(t.Context(), w.JS, LogFrom{Partitions: []int{p}, Seq: from}, func(jetstream.Msg) {})
		beyond, ok := errors.AsType[*BeyondEndError](err)
		if !ok {
			t.Fatalf("from %d: %v", from, err)
		}
		if diff := cmp.Diff(&BeyondEndError{topology.LogStream, from, seq}, beyond); diff != "" {
			t.Error(diff)
		}
		r, err := OpenReader(t.Context(), w.JS, topology.LogStream, Selection{Filters: []string{events.LogFilter(p)}, From: from}.reading())
		if err != nil || r.Pending() != 0 {
			t.Errorf("the server refuses a start beyond the end now: %v", err)
		}
	}
	got := make(chan string, 1)
	stop, err := ConsumeLog(t.Context(), w.JS, LogFrom{Partitions: []int{p}, Seq: seq + 1}, func(m jetstream.Msg) { got <- string(m.Data()) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w.Turn("a", "2")
	if s := <-got; s != "2" {
		t.Errorf("got %s", s)
	}
	r, err := OpenReader(t.Context(), w.JS, topology.LogStream, Selection{Filters: []string{"session.turn.>"}, From: 1}.reading())
	if err != nil || r.Pending() != 0 {
		t.Errorf("a filter on the input subject: %v", err)
	}
}

// ReadStream returns what was there at the call, within its bounds, and never
// waits for more.
func TestReadStream(t *testing.T) {
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	read := func(filter string, from, upTo uint64) (seqs []uint64) {
		t.Helper()
		err := ReadStream(brokertest.Within(t, time.Minute), w.JS, topology.LogStream, filter, from, upTo, func(m jetstream.Msg, seq uint64) error {
			if m.Subject() == "log.0.turn.t.a" && seq < 100 {
				w.Turn("a", "while reading") // the end moves on
			}
			seqs = append(seqs, seq)
			return nil
		})
		if err != nil {
			t.Errorf("%s %d..%d: %v", filter, from, upTo, err)
		}
		return seqs
	}
	if got := read("log.>", 0, 0); got != nil {
		t.Errorf("of an empty stream: %v", got)
	}
	for range 6 {
		w.Turn("b", "x")
		w.Turn("c", "x")
	}
	for _, tc := range []struct {
		filter     string
		from, upTo uint64
		want       []uint64
	}{
		{"log.0.turn.t.b", 0, 0, []uint64{1, 3, 5, 7, 9, 11}},
		{"log.0.turn.t.b", 4, 8, []uint64{5, 7}},
		{"log.0.turn.t.c", 0, 7, []uint64{2, 4, 6}},
		{"log.0.turn.t.c", 12, 0, []uint64{12}},
		{"log.0.>", 11, 999, []uint64{11, 12}},
		{"log.0.>", 13, 0, nil},
		{"log.0.>", 999, 0, nil},
		{"log.0.>", 9, 3, nil},
		{"log.3.>", 0, 0, nil},
		{"session.>", 0, 0, nil},
	} {
		if diff := cmp.Diff(tc.want, read(tc.filter, tc.from, tc.upTo)); diff != "" {
			t.Errorf("%s %d..%d: %s", tc.filter, tc.from, tc.upTo, diff)
		}
	}
	w.Turn("a", "first")
	w.Turn("a", "second")
	if diff := cmp.Diff([]uint64{13, 14}, read("log.0.turn.t.a", 0, 0)); diff != "" {
		t.Errorf("while the end moved: %s", diff)
	}
	boom := errors.New("boom")
	if err := ReadStream(t.Context(), w.JS, topology.LogStream, "log.>", 0, 0, func(jetstream.Msg, uint64) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error of the callback: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := ReadStream(ctx, w.JS, topology.LogStream, "log.>", 0, 0, func(jetstream.Msg, uint64) error { cancel(); return nil })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Pending messages are purged during a read: the read ends, though no message
// is reported as the last.
func TestReadStreamPurged(t *testing.T) {
	t.Parallel()
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	for range 2 * pullMessages {
		if _, err := w.JS.PublishAsync("session.turn.t.a", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	<-w.JS.PublishAsyncComplete()
	log, err := w.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = ReadStream(brokertest.Within(t, time.Minute), w.JS, topology.LogStream, "log.0.>", 0, 0, func(m jetstream.Msg, seq uint64) error {
		if n++; n == 1 {
			return log.Purge(t.Context())
		}
		return nil
	})
	if err != nil || n == 2*pullMessages {
		t.Errorf("read %d, %v", n, err)
	}
}

// Payloads come in the order of the sequences, any number, twice the same, of any size;
// what is gone is listed, and the rest is still there.
func TestGetLog(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	const n = 600
	for i := range n {
		if _, err := w.JS.PublishAsync("session.turn.t.a", []byte(fmt.Sprint(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	<-w.JS.PublishAsyncComplete()
	big := bytes.Repeat([]byte("x"), 4<<20)
	for range 6 {
		w.Turn("b", string(big))
	}
	var seqs []uint64
	for i := range uint64(n) {
		seqs = append(seqs, n-i, i+1)
	}
	got, err := GetLog(t.Context(), w.NC, seqs)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range got {
		if m.Seq != seqs[i] || string(m.Data) != fmt.Sprint(seqs[i]) || !strings.HasSuffix(m.Subject, ".turn.t.a") || time.Since(m.Time) > time.Hour {
			t.Fatalf("%d: requested %d, got %+v", i, seqs[i], m)
		}
	}
	got, err = GetLog(t.Context(), w.NC, []uint64{n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 1, n + 2, n + 3, 1})
	if err != nil || !bytes.Equal(got[8].Data, big) || string(got[9].Data) != "1" {
		t.Errorf("large bodies: %v", err)
	}

	log, _ := w.JS.Stream(t.Context(), topology.LogStream)
	if err := log.DeleteMsg(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	got, err = GetLog(t.Context(), w.NC, []uint64{4, 5, 6, 0, 1 << 60})
	gone, ok := errors.AsType[*GoneError](err)
	if !ok {
		t.Fatal(err)
	}
	slices.Sort(gone.Seqs)
	if diff := cmp.Diff([]uint64{0, 5, 1 << 60}, gone.Seqs); diff != "" {
		t.Error(diff)
	}
	if string(got[0].Data) != "4" || got[1].Subject != "" || string(got[2].Data) != "6" {
		t.Errorf("the rest: %+v", got)
	}
	if got, err := GetLog(t.Context(), w.NC, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// Answers that are lost with the link are requested again.
func TestGetLogLostAnswers(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	seqs := []uint64{w.Turn("a", "1"), w.Turn("b", "2"), w.Turn("c", "3")}
	u, _ := url.Parse(w.Srv.ClientURL())
	link := brokertest.NewWire(t, u.Host)
	nc, err := connect.Open(t.Context(), connect.Options{URL: link.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	hit := link.Arm(brokertest.LoseAnswer, subjectDirectGet)
	go func() { <-hit; link.Cut() }()
	got, err := GetLog(brokertest.Within(t, time.Minute), nc, seqs)
	if err != nil || string(got[0].Data)+string(got[1].Data)+string(got[2].Data) != "123" {
		t.Errorf("got %v, %v", got, err)
	}
	link.Arm(brokertest.LoseRequest, subjectDirectGet)
	if _, err := GetLog(brokertest.Within(t, 50*time.Millisecond), nc, seqs); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without any answer: %v", err)
	}
}
