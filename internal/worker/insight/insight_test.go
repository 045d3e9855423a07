package insight_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

// answerOf requests something of the session s1 over HTTP, and validates the answer by its schema.
func answerOf(env *workertest.Env, m *worker.Monitor, path string, out any) {
	env.T.Helper()
	status, body := workertest.Get(env.T, m, "/v1/sessions/default/s1/"+path, "", "")
	name, _, _ := strings.Cut(path, "?")
	if err := schematest.Validate(name+"-response", []byte(body)); err != nil || status != http.StatusOK {
		env.T.Fatalf("%s: %d %v: %.300s", path, status, err, body)
	}
	if err := codec.Unmarshal([]byte(body), out); err != nil {
		env.T.Fatal(err)
	}
}

// Of a session that was compacted one sees how it grew, what each compaction did to each message, what
// fills its window, and what one more would do, which changes nothing.
func TestInsights(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	for n := 1; n <= 24; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	var x events.XrayResponse
	answerOf(env, m, "xray", &x)
	if !x.Known || !x.Valid || tokensOf(x) != x.Input || x.Input != env.Stats("s1").Budget.EstimatedInput || len(x.Largest) == 0 {
		t.Errorf("the window: %+v", x)
	}
	var past events.XrayResponse
	var history events.HistoryResponse
	answerOf(env, m, fmt.Sprintf("xray?generation=%d", x.Generation-1), &past)
	answerOf(env, m, "history?limit=1", &history)
	if before := history.Entries[0].TokensBefore; past.Input != before || tokensOf(past) != before {
		t.Errorf("before generation %d: %d tokens, in parts %d, want %d", x.Generation, past.Input, tokensOf(past), before)
	}
	var line events.TimelineResponse
	answerOf(env, m, "timeline", &line)
	if len(line.Turns) != 24 || int64(len(line.Generations)) != line.Generation || line.Generation == 0 {
		t.Fatalf("the timeline: %+v", line)
	}
	last := line.Turns[23]
	if now := env.Stats("s1").Budget.EstimatedInput; line.Input != now || line.Turns[0].Input < line.Turns[0].Added {
		t.Errorf("%d tokens now: the first turn %+v, the last %+v", now, line.Turns[0], last)
	}
	if last.Published <= last.Input || last.Input <= 0 {
		t.Errorf("the last turn: %+v", last)
	}
	for g := int64(1); g <= line.Generation; g++ {
		wantChanges(env, m, g)
	}
	for _, path := range []string{"changes", "context", "xray"} {
		none, least := []int64{line.Generation + 1, 999}, 0
		if path == "changes" {
			none, least = append(none, 0), 1
		}
		for _, g := range none {
			status, body := workertest.Get(t, m, fmt.Sprintf("/v1/sessions/default/s1/%s?generation=%d", path, g), "", "")
			if hint := fmt.Sprintf("Name one from %d to %d.", least, line.Generation); status != http.StatusNotFound || !strings.Contains(body, `"unknown_generation"`) || !strings.Contains(body, hint) {
				t.Errorf("%s of generation %d: %d %.200s", path, g, status, body)
			}
		}
	}
	before := env.Stats("s1")
	status, body := workertest.Post(t, m, "/v1/sessions/default/s1/preview", `{"focus":"the parser"}`)
	if err := schematest.Validate("preview-response", []byte(body)); err != nil || status != http.StatusOK {
		t.Errorf("preview: %d %v %s", status, err, body)
	}
	for path, field := range map[string]string{"preview": "focuss", "whatif": "policies"} {
		status, body := workertest.Post(t, m, "/v1/sessions/default/s1/"+path, fmt.Sprintf(`{%q:[]}`, field))
		if status != http.StatusBadRequest || !strings.Contains(body, field) {
			t.Errorf("%s with a field %s: %d %s", path, field, status, body)
		}
	}
	if after := env.Stats("s1"); after.Generation != before.Generation || after.Waiting != before.Waiting {
		t.Errorf("a preview changed %+v into %+v", before, after)
	}
}

// tokensOf is the sum of all kinds.
func tokensOf(x events.XrayResponse) (sum int64) {
	for _, k := range x.Kinds {
		sum += k.Tokens
	}
	return sum
}

// wantChanges checks that what a compaction did is in the rows.
func wantChanges(env *workertest.Env, m *worker.Monitor, generation int64) {
	env.T.Helper()
	var c events.ChangesResponse
	answerOf(env, m, fmt.Sprintf("changes?generation=%d", generation), &c)
	count := map[events.Action]int{}
	for _, r := range c.Rows {
		count[r.Action]++
		if r.Action == events.ActionKept && r.TokensBefore != r.TokensAfter || r.Action == events.ActionChanged && (r.Before == r.After || r.Op == "") {
			env.T.Errorf("generation %d: %+v", generation, r)
		}
	}
	if count[events.ActionChanged]+count[events.ActionRemoved] == 0 || c.After >= c.Before {
		env.T.Errorf("generation %d: %v, %d to %d tokens", generation, count, c.Before, c.After)
	}
}
