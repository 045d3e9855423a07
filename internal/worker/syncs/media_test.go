package syncs_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/mediatest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// mediaAgent is an agent of any dialect that sends its history over HTTP.
type mediaAgent struct {
	t       *testing.T
	edge    *workertest.Edge
	session string
	format  events.Format
	history []codec.Raw
}

// add adds words of the user or the assistant.
func (a *mediaAgent) add(role, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		a.t.Fatal(err)
	}
	form := `{"role":%q,"content":%s}`
	switch a.format {
	case events.Gemini:
		form = `{"role":%q,"parts":[{"text":%s}]}`
		if role == "assistant" {
			role = "model"
		}
	case events.Bedrock:
		form = `{"role":%q,"content":[{"text":%s}]}`
	}
	a.history = append(a.history, codec.Raw(fmt.Sprintf(form, role, quoted)))
}

// sync sends the history, and returns what goes to the provider, which must take it.
func (a *mediaAgent) sync(query, more string) (events.SyncResponse, []codec.Raw) {
	a.t.Helper()
	list := make([]string, len(a.history))
	for i, m := range a.history {
		list[i] = string(m)
	}
	body := fmt.Sprintf(`{"format":%q,"model":{"provider":"x","name":"m","context_window":30000,"max_output_tokens":1000},"wait_ms":8000%s,"messages":[%s]}`,
		a.format, more, strings.Join(list, ","))
	status, text := a.edge.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/"+a.session+"/sync"+query, body)
	var out events.SyncResponse
	if err := codec.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		a.t.Fatalf("%s %s: %d %.600s", a.format, a.session, status, text)
	}
	if slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate }) {
		return a.sync(query, more) // a busy machine
	}
	sent := out.Messages
	if query == "" {
		sent = align.Apply(a.history, out.Parts)
	}
	if bad := validate.Messages(a.format, sent); len(bad) > 0 {
		a.t.Errorf("%s %s: %v", a.format, a.session, bad)
	}
	return out, sent
}

// work adds exchanges until the history was compacted.
func (a *mediaAgent) work() (events.SyncResponse, []codec.Raw) {
	a.t.Helper()
	for i := range 30 {
		a.add("assistant", strings.Repeat(fmt.Sprintf("answer %d ", i), 700))
		a.add("user", fmt.Sprintf("question %d", i))
		if out, sent := a.sync("", ""); out.Generation > 0 {
			return out, sent
		}
	}
	a.t.Fatalf("%s %s: nothing was compacted", a.format, a.session)
	return events.SyncResponse{}, nil
}

// userPlaces are the places of media in a message of the user.
func userPlaces(f events.Format) (out []string) {
	for _, place := range mediatest.Places[string(f)] {
		user := strings.HasPrefix(place, `{"role":"user"`)
		if f == events.Responses && strings.Contains(place, "input_audio") {
			continue // taken for one of chat completions
		}
		if user && !strings.Contains(place, "esult") && !strings.Contains(place, "functionResponse") {
			out = append(out, place)
		}
	}
	return out
}

// An image of 5.5 MB does not end compaction, in any dialect, place and form: its turn refers to
// it, the agent keeps its own object, and where the history is written by compactd a placeholder
// stands in its place. A worker that remembers nothing finds the session again.
func TestSyncLargeMedia(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	e := env.RunEdge()
	r := e.Running
	large, small := mediatest.PNG(t, 5_500_000), mediatest.PNG(t, 300_000)
	var all []*mediaAgent
	for _, f := range events.Formats() {
		for i, place := range userPlaces(f) {
			a := &mediaAgent{t: t, edge: e, session: fmt.Sprintf("%s-%d", f, i), format: f}
			a.add("user", "Look at the picture that I send you next.")
			a.add("assistant", "Send it.")
			data, form := small, 1+i%2
			if i == 0 && (f == events.Anthropic || f == events.OpenAI) {
				data, form = large, 0
			}
			own := codec.Raw(mediatest.In(place, data, form))
			a.history = append(a.history, own)
			out, sent := a.sync("", "")
			if out.Changed || len(sent) != 3 || &sent[2][0] != &own[0] || !out.Budget.WithinBudget || out.Budget.EstimatedInput > 15_000 {
				t.Errorf("%s: %+v", a.session, out)
			}
			for _, logged := range env.Logged(a.session, events.KindTurn) {
				if len(logged) > 20_000 {
					t.Errorf("%s: a turn of %d bytes", a.session, len(logged))
				}
			}
			wantPlaceheld(a, env.ContextMessages(a.session))
			wantPlaceheld(a, env.Recall(fmt.Sprintf(`{"session":%q,"turn":1}`, a.session)).Messages)
			a.work()
			all = append(all, a)
		}
	}
	r.Stop()
	r = env.StartReady("b", observe.Listener{})
	e = env.StartEdge(r.Worker, nil)
	for _, a := range all {
		a.edge = e
		turns := env.LoggedTurns(a.session)
		a.add("assistant", "done")
		out, _ := a.sync("", `,"on_diverge":"refuse"`)
		if n := env.LoggedTurns(a.session); n != turns+1 || out.Session != "" || out.Count != int64(len(a.history)) {
			t.Errorf("%s: %d turns, then %d: %+v", a.session, turns, n, out)
		}
		out, sent := a.sync("?form=messages", "")
		if len(sent) == 0 || out.Generation == 0 {
			t.Errorf("%s: %+v", a.session, out)
		}
	}
	r.Stop()
	if replayed := env.Replay(redecide.Span{}); !replayed.Equal() {
		t.Errorf("a replay differs: %+v", replayed.Differences)
	}
}

// wantPlaceheld checks that messages which compactd writes state that an image was kept by its
// hash.
func wantPlaceheld(a *mediaAgent, messages []codec.Raw) {
	a.t.Helper()
	if bad := validate.Messages(a.format, messages); len(bad) > 0 {
		a.t.Errorf("%s: %v", a.session, bad)
	}
	if all := bytes.Join(asBytes(messages), nil); !bytes.Contains(all, []byte(", kept by hash sha256:")) {
		a.t.Errorf("%s: %.900s", a.session, all)
	}
}

func asBytes(list []codec.Raw) (out [][]byte) {
	for _, m := range list {
		out = append(out, m)
	}
	return out
}

// 40 images of 0.9 MB, all of them in one request after a restart, are taken: a session that has
// them recognises them, and one that has not is compacted like any other. The messages to send
// are the agent's own.
func TestSyncManyMedia(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	e := env.RunEdge()
	r := e.Running
	a := &mediaAgent{t: t, edge: e, session: "shots", format: events.Anthropic}
	a.add("user", "Look at the screen until it is green.")
	for i := range 40 {
		shot := mediatest.In(mediatest.Places["anthropic"][3], mediatest.PNG(t, 900_000+16*i), 0)
		a.history = append(a.history,
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"screenshot","input":{}}]}`, i)),
			codec.Raw(strings.Replace(shot, `"t1"`, fmt.Sprintf(`"t%d"`, i), 1)))
	}
	out, sent := a.sync("", "")
	if !out.Changed || out.Generation == 0 || !out.Budget.WithinBudget || out.Count != int64(len(a.history)) {
		t.Errorf("%+v", out)
	}
	if last := sent[len(sent)-1]; &last[0] != &a.history[len(a.history)-1][0] {
		t.Errorf("the newest image is sent as %.300s", last)
	}
	r.Stop()
	r = env.StartReady("b", observe.Listener{})
	a.edge = env.StartEdge(r.Worker, nil)
	turns := env.LoggedTurns(a.session)
	a.add("assistant", "It is green.")
	again, _ := a.sync("", `,"on_diverge":"refuse"`)
	if n := env.LoggedTurns(a.session); n != turns+1 || again.Known != out.Count || again.Generation < out.Generation {
		t.Errorf("%d turns, then %d: %+v", turns, n, again)
	}
	whole, messages := a.sync("?form=messages", "")
	if n := len(messages); n == 0 || cmp.Compare(whole.Generation, again.Generation) < 0 || !bytes.Contains(bytes.Join(asBytes(messages), nil), []byte("It is green.")) {
		t.Errorf("%d messages: %+v", n, whole)
	}
}

// A client that holds nothing but what it was answered, with placeholders for media that only the
// log had, goes on with its session.
func TestSyncViewWithPlaceholders(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	e := env.RunEdge()
	for name, held := range map[string]func(session string, own []codec.Raw) []codec.Raw{
		"own":     func(_ string, own []codec.Raw) []codec.Raw { return own },
		"context": func(session string, _ []codec.Raw) []codec.Raw { return env.ContextMessages(session) },
	} {
		a := &mediaAgent{t: t, edge: e, session: name, format: events.OpenAI}
		a.add("user", "Look at the picture that I send you next.")
		for i := range 12 {
			a.add("assistant", strings.Repeat(fmt.Sprintf("answer %d ", i), 900))
			a.add("user", fmt.Sprintf("question %d", i))
		}
		own := codec.Raw(mediatest.In(mediatest.Places["openai"][0], mediatest.PNG(t, 600_000), 0))
		a.history = append(a.history, own)
		out, inline := a.sync("", "")
		if out.Generation == 0 || !bytes.Contains(bytes.Join(asBytes(inline), nil), own) {
			t.Fatalf("%s: %+v", name, out)
		}
		turns := env.LoggedTurns(a.session)
		a.history = held(a.session, inline)
		a.add("assistant", "A cat.")
		out, _ = a.sync("", `,"on_diverge":"refuse"`)
		if n := env.LoggedTurns(a.session); out.Session != "" || n != turns+1 || out.Turns != int64(n) {
			t.Errorf("%s: %d turns, then %d: %+v", name, turns, n, out)
		}
	}
}
