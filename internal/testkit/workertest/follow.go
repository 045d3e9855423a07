package workertest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// Event is one event of a stream.
type Event struct{ ID, Name, Data string }

// Follow receives the events of a session of the tenant default, after one id; "" is now.
func (e *Edge) Follow(session, after string) (received <-chan Event, stop func()) {
	e.T.Helper()
	received, stop, err := Follow(e.T, e.Listener.Addr(), session, after)
	if err != nil {
		e.T.Fatal(err)
	}
	return received, stop
}

// Follow is the same at any address; where nothing answers it is an error.
func Follow(t *testing.T, addr, session, after string) (received <-chan Event, stop func(), err error) {
	t.Helper()
	session, query, _ := strings.Cut(session, "?")
	return receive(t, addr+"/v1/sessions/default/"+session+"/events?"+query, after)
}

// Signals receives what a monitor shows operators of a session that a query names, after one id;
// "" is now.
func Signals(t *testing.T, m *worker.Monitor, query, after string) (received <-chan Event, stop func()) {
	t.Helper()
	received, stop, err := receive(t, m.Addr()+"/v1/events"+query, after)
	if err != nil {
		t.Fatal(err)
	}
	return received, stop
}

// receive follows a stream from an address on.
func receive(t *testing.T, from, after string) (received <-chan Event, stop func(), err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+from, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+DefaultToken)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return nil, nil, fmt.Errorf("%s: %s", resp.Status, data)
	}
	out := make(chan Event, 1000)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 16<<20)
		var at Event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				at.ID = value
			case "event":
				at.Name = value
			case "data":
				at.Data += value
			case "":
				out <- at
				at = Event{}
			}
		}
	}()
	return out, func() { resp.Body.Close() }, nil
}

// NextEvent returns the next event that is no sign of life.
func NextEvent(t *testing.T, from <-chan Event) Event {
	t.Helper()
	for {
		select {
		case got, ok := <-from:
			if !ok {
				t.Fatal("the stream ended")
			}
			if got.Name != "" {
				return got
			}
		case <-time.After(WaitLimit):
			t.Fatal("no event came")
		}
	}
}

// EventsOf reads what a reader of a session is to get.
func (env *Env) EventsOf(session string) (out []Event) {
	env.T.Helper()
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err == nil && at.Address.Session == session {
			out = append(out, Event{strconv.FormatUint(seq, 10), string(at.Kind), string(m.Data())})
		}
		return err
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}
