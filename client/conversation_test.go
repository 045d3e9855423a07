package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/client"
	"compactd/internal/testkit/exchanges"
)

type wireMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

var codec = client.Codec[*exchanges.Native]{
	To: func(m *exchanges.Native) (any, error) {
		if m.Role == "" {
			return nil, errors.New("no role")
		}
		return wireMessage{m.Role, m.Text}, nil
	},
	From: func(message json.RawMessage, own **exchanges.Native) (*exchanges.Native, error) {
		var m wireMessage
		if err := json.Unmarshal(message, &m); err != nil {
			return nil, err
		}
		out := &exchanges.Native{Role: m.Role, Text: m.Content}
		if own != nil {
			out.Note = (*own).Note
		}
		return out, nil
	},
}

// conversation makes a [client.Conversation] one of the suite.
type conversation struct {
	client.Conversation[*exchanges.Native]
}

func (c *conversation) Fit(ctx context.Context, history []*exchanges.Native) exchanges.Sent {
	return sent{c.Conversation.Fit(ctx, history)}
}

type sent struct {
	of *client.Fitted[*exchanges.Native]
}

func (s sent) Messages() []*exchanges.Native { return s.of.Messages }

func (s sent) Refused(ctx context.Context, refusal string, status int) (exchanges.Sent, bool) {
	again, ok := s.of.Refused(ctx, refusal, status)
	return sent{again}, ok
}

func (s sent) Used(usage json.RawMessage) { s.of.Used(usage) }

// A conversation does what clients/conformance demands of the core of every adapter.
func TestConversation(t *testing.T) {
	exchanges.RunCore(t, "../clients/conformance/core", func(s exchanges.Setup) exchanges.Conversation {
		return &conversation{client.Conversation[*exchanges.Native]{
			Fitter: client.NewFitter(client.FitterConfig{
				Worker: &client.HTTP{URL: s.Worker, Token: s.Token}, Wait: time.Duration(s.Options.WaitMS) * time.Millisecond,
				OnProblem:   func(n client.Note) { s.OnProblem(string(n.Code)) },
				OnCompacted: func(_ string, f *client.Synced) { s.OnCompacted(f.Generation) },
			}),
			Session: s.Options.Session, Codec: codec,
		}}
	})
}

// Messages that a worker has are not sent again, but for those with media that it may have by their
// hash alone; where it needs them, the whole history is.
func TestConversationPrefix(t *testing.T) {
	var requests [][2]int
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Prefix   struct{ Count int }
			Messages []any
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		requests = append(requests, [2]int{in.Prefix.Count, len(in.Messages)})
		if len(requests) == 3 {
			fmt.Fprint(w, `{"v":1,"need":"all"}`)
			return
		}
		n := in.Prefix.Count + len(in.Messages)
		fmt.Fprintf(w, `{"v":1,"count":%d,"hash":"abababababababababababababababab","view":"0:ab","parts":[{"keep":[0,%d]}],"warnings":[],"budget":{}}`, n, n)
	}))
	defer worker.Close()
	c := client.Conversation[wireMessage]{
		Fitter:  client.NewFitter(client.FitterConfig{Worker: &client.HTTP{URL: worker.URL}, Wait: time.Minute}),
		Session: "s",
	}
	var history []wireMessage
	for _, text := range []string{"a", "b", "c", strings.Repeat("d", 256<<10), "e"} {
		history = append(history, wireMessage{"user", text})
		c.Fit(t.Context(), history)
	}
	history[0].Content = "edited"
	c.Fit(t.Context(), history)
	if want := [][2]int{{0, 1}, {1, 1}, {2, 1}, {0, 3}, {3, 1}, {0, 5}, {0, 5}}; !slices.Equal(requests, want) {
		t.Errorf("prefixes and messages: %v, want %v", requests, want)
	}
}

// A message that the codec refuses is reported, and the agent sends its own history.
func TestConversationCodec(t *testing.T) {
	var problems []client.Code
	c := client.Conversation[*exchanges.Native]{
		Fitter: client.NewFitter(client.FitterConfig{
			Worker: &client.HTTP{URL: "http://127.0.0.1:0"}, OnProblem: func(n client.Note) { problems = append(problems, n.Code) },
		}),
		Session: "s", Codec: codec,
	}
	history := []*exchanges.Native{{Role: "user", Text: "a"}, {}}
	got := c.Fit(t.Context(), history)
	got.Used(map[string]int{"prompt_tokens": 1})
	if _, ok := got.Refused(t.Context(), "too long", 400); ok || got.Changed || len(got.Messages) != 2 || got.Messages[1] != history[1] {
		t.Errorf("%+v", got)
	}
	if len(problems) != 1 || problems[0] != client.CodeCodec {
		t.Errorf("problems: %v", problems)
	}
}

// A caller that ends its call is no sign of a worker that is away: nothing is reported.
func TestConversationAborted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	requests := 0
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			fmt.Fprint(w, `{"v":1,"count":1,"hash":"abababababababababababababababab","view":"0:ab",`+
				`"parts":[{"keep":[0,1]}],"warnings":[],"budget":{"level":"ok","available_input_tokens":1000,"estimated_input_tokens":900}}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer worker.Close()
	var problems []client.Code
	c := client.Conversation[wireMessage]{
		Fitter: client.NewFitter(client.FitterConfig{
			Worker: &client.HTTP{URL: worker.URL}, Wait: time.Minute, OnProblem: func(n client.Note) { problems = append(problems, n.Code) },
		}),
		Session: "s",
	}
	history := []wireMessage{{"user", strings.Repeat("a", 1000)}}
	c.Fit(ctx, history)
	for range 3 {
		history = append(history, wireMessage{"assistant", strings.Repeat("b", 1000)}, wireMessage{"user", "c"})
	}
	if c.Fit(ctx, history); requests != 2 || len(problems) > 0 {
		t.Errorf("%d requests, problems %v", requests, problems)
	}
}
