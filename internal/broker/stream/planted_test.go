package stream

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/plant"
)

// planted stores every block that is known to be hostile, with and without a payload, each
// before a good event, and returns all in their order.
func (w *env) planted() (stored []LogMessage) {
	w.T.Helper()
	c, err := plant.Dial(w.Srv.ClientURL(), nil)
	if err != nil {
		w.T.Fatal(err)
	}
	defer c.Close()
	for i, b := range plant.All() {
		for _, body := range []string{"", `{"message":{"subject":"log.0.turn.other.s","seq":1,"data":"e30="}}`} {
			seq, err := c.Publish(fmt.Sprintf("session.turn.evil.s%d", i), b.Text, body)
			if errors.Is(err, plant.ErrDuplicate) {
				continue
			}
			if err != nil {
				w.T.Fatalf("%s: %v", b.Name, err)
			}
			stored = append(stored, LogMessage{Seq: seq, Subject: fmt.Sprintf("log.0.turn.evil.s%d", i), Data: []byte(body)})
		}
		stored = append(stored, LogMessage{Seq: w.Turn("good", fmt.Sprint(i)), Subject: "log.0.turn.t.good", Data: []byte(fmt.Sprint(i))})
	}
	return stored
}

func logged(m jetstream.Msg, seq uint64) LogMessage {
	return LogMessage{Seq: seq, Subject: m.Subject(), Data: append([]byte{}, m.Data()...)}
}

// Events whose headers look like the server's own, or like nothing, are read like any other,
// at once and in order, by whatever reads the log: hostile actors, control-message
// look-alikes.
func TestPlantedHeadersAreRead(t *testing.T) {
	t.Parallel()
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	want := w.planted()
	got := make(chan LogMessage, len(want))
	problems := make(chan string, 100)
	stop, err := ConsumeLog(t.Context(), w.JS, LogFrom{
		Partitions: []int{0},
		OnError:    func(err error) { problems <- err.Error() },
		OnFetched:  func(seq uint64, why error) { problems <- fmt.Sprintf("%d was read by its sequence: %v", seq, why) },
	}, func(m jetstream.Msg) {
		md, _ := m.Metadata()
		got <- logged(m, md.Sequence.Stream)
	})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for i, m := range want {
		select {
		case g := <-got:
			if diff := cmp.Diff(m, g); diff != "" {
				t.Fatal(diff)
			}
		case why := <-problems:
			t.Fatalf("event %d of %d: %s", i, len(want), why)
		case <-deadline:
			t.Fatalf("event %d of %d was not read within a minute", i, len(want))
		}
	}
	stop()

	var read []LogMessage
	err = ReadStream(brokertest.Within(t, time.Minute), w.JS, topology.LogStream, "log.>", 0, 0, func(m jetstream.Msg, seq uint64) error {
		read = append(read, logged(m, seq))
		return nil
	})
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// An event that was stored when the server took larger ones fits into no pull. It is read by
// its sequence, and what comes after it as before.
func TestReaderFetchesTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := openEnv(t, dir, topology.Config{Partitions: 1})
	w.Turn("a", "1")
	large := string(make([]byte, 6<<20))
	at := w.Turn("a", large)
	w.Turn("a", "3")
	w.NC.Close()
	w.Srv.Stop()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: "-1", MaxPayload: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	w.Srv = srv
	w.NC = w.Connect(connect.Options{})
	w.JS = brokertest.NewJS(t, w.NC)

	got, fetched := make(chan int, 10), make(chan uint64, 10)
	stop, err := ConsumeLog(t.Context(), w.JS, LogFrom{Partitions: []int{0}, OnFetched: func(seq uint64, _ error) { fetched <- seq }}, func(m jetstream.Msg) { got <- len(m.Data()) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	deadline := time.After(time.Minute)
	for _, n := range []int{1, len(large), 1} {
		select {
		case g := <-got:
			if g != n {
				t.Errorf("%d bytes, not %d", g, n)
			}
		case <-deadline:
			t.Fatal("nothing more within a minute")
		}
	}
	if seq := <-fetched; seq != at || len(fetched) > 0 {
		t.Errorf("sequence %d was read by itself, not %d, and %d more", seq, at, len(fetched))
	}
	var sizes []int
	err = ReadStream(brokertest.Within(t, time.Minute), w.JS, topology.LogStream, "log.>", 0, 0, func(m jetstream.Msg, _ uint64) error {
		sizes = append(sizes, len(m.Data()))
		return nil
	})
	if diff := cmp.Diff([]int{1, len(large), 1}, sizes); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// An event that is read by its sequence has the subject and the time that the server gave it,
// whatever its headers say of them: hostile actors, planted server headers.
func TestPlantedHeadersBySequence(t *testing.T) {
	t.Parallel()
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	want := w.planted()
	seqs := make([]uint64, len(want))
	for i, m := range want {
		seqs[i] = m.Seq
	}
	got, err := GetLog(brokertest.Within(t, time.Minute), w.NC, seqs)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	err = ReadStream(brokertest.Within(t, time.Minute), w.JS, topology.LogStream, "log.>", 0, 0, func(m jetstream.Msg, seq uint64) error {
		md, _ := m.Metadata()
		one := logged(m, seq)
		one.Time = md.Timestamp.UTC()
		if diff := cmp.Diff(one, got[i], cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		i++
		return nil
	})
	if err != nil || i != len(got) {
		t.Errorf("%d of %d: %v", i, len(got), err)
	}
	one, err := GetLog(t.Context(), w.NC, []uint64{1 << 60})
	if _, gone := errors.AsType[*GoneError](err); !gone {
		t.Errorf("what is not there: %+v, %v", one, err)
	}
}

// Headers as honest clients write them need no second question: a copy of the log answers.
func TestHonestHeadersAreReadFromAnyCopy(t *testing.T) {
	t.Parallel()
	w := openEnv(t, t.TempDir(), topology.Config{Partitions: 1})
	c, err := plant.Dial(w.Srv.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var seqs []uint64
	for i, block := range []string{
		"",
		plant.Headers("Nats-Msg-Id", "a", "traceparent", trace, "ce-type", "session.turn", "ce-source", "agent", "ce-id", "x", "ce-specversion", "1.0"),
		"NATS/1.0\r\nNats-Msg-Id:b\r\ntraceparent:" + trace + "\r\nce-id:x\r\n\r\n", // as the client for Java writes it
		plant.Headers("X", "", "x", "", "X", "two"),
	} {
		seq, err := c.Publish("session.turn.t.a", block, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	requests, err := w.NC.SubscribeSync(jsapi.SubjectGet + topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	got, err := GetLog(brokertest.Within(t, time.Minute), w.NC, seqs)
	for i := range got {
		if string(got[i].Data) != fmt.Sprint(i) || got[i].Subject != "log.0.turn.t.a" || time.Since(got[i].Time).Abs() > time.Hour {
			t.Errorf("%+v", got[i])
		}
	}
	if n, _, _ := requests.Pending(); err != nil || n > 0 {
		t.Errorf("the leader got %d requests; %v", n, err)
	}
}
