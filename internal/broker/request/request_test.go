package request_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

func dial(t *testing.T) *nats.Conn {
	t.Helper()
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// Without a worker the error reports that no worker is running.
func TestNoWorker(t *testing.T) {
	_, err := request.History(t.Context(), dial(t), events.ContextRequest{About: events.Address{Tenant: "default", Session: "s"}.About()})
	if err == nil || !strings.Contains(err.Error(), "no worker is running") {
		t.Errorf("got %v", err)
	}
}

// Pages of two states of a session are never joined: they are read again, and
// given up when the session does not rest.
func TestPagesOfOneState(t *testing.T) {
	for _, test := range []struct {
		changes int // how many times a turn comes in between
		want    string
	}{{0, "[0 0 0]"}, {2, "[2 2 2]"}, {100, request.ErrMoving.Error()}} {
		nc, state := dial(t), 0
		_, err := nc.Subscribe(events.SubjectContext, func(m *nats.Msg) {
			var in events.ContextRequest
			if err := codec.Unmarshal(m.Data, &in); err != nil {
				t.Error(err)
			}
			if in.Page == 3 && state < test.changes {
				state++
			}
			_ = m.Respond(fmt.Appendf(nil, `{"v":1,"known":true,"format":"openai","messages":[%d],"through":{"seq":%d,"turn":1},"page":%d,"pages":3}`, state, state, in.Page))
		})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if whole, err := request.History(t.Context(), nc, events.ContextRequest{About: events.Address{Tenant: "default", Session: "s"}.About()}); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%s", whole.Messages)
		}
		if got != test.want {
			t.Errorf("%d changes: got %s, want %s", test.changes, got, test.want)
		}
	}
}
