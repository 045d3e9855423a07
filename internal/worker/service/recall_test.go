package service_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// wantRecalled compares what is recalled of a session with what was published.
func wantRecalled(env *workertest.Env, session string, turns [][]byte) {
	env.T.Helper()
	for i, data := range turns {
		turn, err := events.DecodeTurn(data)
		if err != nil {
			env.T.Fatal(err)
		}
		n := int64(i + 1)
		got := env.Recall(fmt.Sprintf(`{"session":%q,"turn":%d}`, session, n))
		if !got.Known || got.Turn != n || got.Index != 0 || got.Pages != 1 || got.Format != events.OpenAI || got.Seq == 0 {
			env.T.Errorf("turn %d: %+v", n, got)
		}
		if d := cmp.Diff(turn.Messages, got.Messages); d != "" {
			env.T.Errorf("turn %d (-published +recalled):\n%s", n, d)
		}
		for k := range turn.Messages {
			one := env.Recall(fmt.Sprintf(`{"session":%q,"tenant":"default","turn":%d,"index":%d}`, session, n, k))
			if one.Index != int64(k) || len(one.Messages) != 1 || string(one.Messages[0]) != string(turn.Messages[k]) {
				env.T.Errorf("turn %d, message %d: %+v", n, k, one)
			}
		}
	}
}

// C8, P5: whatever compactions have changed, every message of a session is recalled byte for
// byte, by turn and index. So it is after a restart, and from a ledger file. For a retracted
// turn the turn that replaced it is recalled.
func TestRecall(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Ledgers = t.TempDir()
	stop := env.Run("a", observe.Listener{})
	var turns [][]byte
	for n := 1; n <= 24; n++ {
		turns = append(turns, workertest.Turn(n))
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	again := slices.Clone(turns[:20])
	again = append(again, []byte(strings.Replace(string(workertest.Turn(21)), `"turn":21`, `"turn":21,"replaces_from":21`, 1)), workertest.Turn(22))
	again[20] = []byte(strings.ReplaceAll(string(again[20]), "word 21", `w\u006frd \/ again`))
	env.Publish(events.KindTurn, "s2", workertest.Turn(1))
	env.Publish(events.KindTurn, "s1", workertest.Turn(26)) // parked
	env.AwaitDecided()
	if len(env.Compactions("s1")) == 0 {
		t.Fatal("no compaction: the test shows nothing")
	}
	wantRecalled(env, "s1", turns)
	wantRecalled(env, "s2", turns[:1])
	for _, data := range again[20:] {
		env.Publish(events.KindTurn, "s1", data)
	}
	env.AwaitDecided()
	wantRecalled(env, "s1", again)
	stop()
	env.Run("b", observe.Listener{})
	wantRecalled(env, "s1", again)
	for in, want := range map[string]events.Code{
		`{"session":"s1","turn":23}`:                                      events.CodeUnknownTurn, // retracted
		`{"session":"s1","turn":26}`:                                      events.CodeUnknownTurn, // parked
		`{"session":"s1","turn":1,"index":2}`:                             events.CodeUnknownTurn,
		`{"session":"s2","turn":2}`:                                       events.CodeUnknownTurn, // of another session
		`{"session":"s1","turn":1,"page":2}`:                              events.CodeOutOfRange,
		`{"session":"s1","turn":0}`:                                       events.CodeOutOfRange,
		`{"session":"s1","turn":1,"index":-1}`:                            events.CodeOutOfRange,
		`{"session":"s1","turn":"1"}`:                                     events.CodeBadType,
		`{"session":"s1"}`:                                                events.CodeMissingField,
		`{"turn":1}`:                                                      events.CodeMissingField,
		`{"session":"s1","turn":1,"text":"x"}`:                            events.CodeMissingField,
		`{"session":"s1","text":" "}`:                                     events.CodeMissingField,
		`{"session":"s1","text":7}`:                                       events.CodeBadType,
		`{"session":"s1","text":"x","limit":0}`:                           events.CodeOutOfRange,
		`{"session":"s1","text":"x","limit":101}`:                         events.CodeOutOfRange,
		`{"session":"s1","text":"x","before":7}`:                          events.CodeBadType,
		`{"session":"s1","text":"x","before":{"index":7}}`:                events.CodeMissingField,
		`{"session":"s1","text":"` + strings.Repeat("x", 1_025) + `"}`:    events.CodeTooLarge,
		`{"session":"s1","tenant":"*","turn":1}`:                          events.CodeBadID,
		`{"session":"s1","turn":1,"turn":2}`:                              events.CodeDuplicateKey,
		`{"session":"s1","text":"x","before":{"turn":99999999999999999}}`: events.CodeOutOfRange,
	} {
		if e := env.Request(events.SubjectRecall, in, nil); e == nil || e.Code != want || e.Hint == "" {
			t.Errorf("recall %.60s: got %+v, want %s", in, e, want)
		}
	}
	if got := env.Recall(`{"session":"unknown","turn":1}`); got.Known || len(got.Messages) != 0 {
		t.Errorf("an unknown session: %+v", got)
	}
	if got := env.Recall(`{"session":"s1","tenant":"other","turn":1}`); got.Known || len(got.Messages) != 0 {
		t.Errorf("a session of another tenant: %+v", got)
	}
}

// A turn larger than an answer is recalled in pages, which together are the whole turn.
func TestRecallPages(t *testing.T) {
	t.Parallel()
	const maxPayload = 256 << 10
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: maxPayload}, topology.Config{Partitions: 2})
	env.Run("a", observe.Listener{})
	var messages []string
	for i := range 24 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("lorem ", 1_700)))
	}
	env.Publish(events.KindTurn, "s", []byte(`{"turn":1,"messages":[`+strings.Join(messages, ",")+`]}`))
	env.AwaitDecided()
	first := env.Recall(`{"session":"s","turn":1}`)
	var got []string
	for page := int64(1); page <= first.Pages; page++ {
		r := env.Recall(fmt.Sprintf(`{"session":"s","turn":1,"page":%d}`, page))
		if r.Index != int64(len(got)) || r.Page != page || r.Seq != first.Seq {
			t.Errorf("page %d begins at %d, want %d", page, r.Index, len(got))
		}
		for _, m := range r.Messages {
			got = append(got, string(m))
		}
	}
	if d := cmp.Diff(messages, got); d != "" || first.Pages < 2 {
		t.Errorf("%d pages (-published +recalled):\n%s", first.Pages, d)
	}
}

// C8, B14: the turn and message that the notice of a cut output names are those of the output.
func TestRecallOfCutOutput(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	output := "first line of the output\n" + strings.Repeat("line of the output\n", 6_000) + "last line"
	tool := fmt.Sprintf(`{"role":"tool","tool_call_id":"c1","content":%q}`, output)
	env.Publish(events.KindTurn, "s", workertest.Turn(1))
	env.Publish(events.KindTurn, "s", []byte(`{"turn":2,"model":{"provider":"openai","name":"gpt-4o","context_window":50000},"messages":[{"role":"user","content":"run it"},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}]},`+tool+`,{"role":"assistant","content":"done"}]}`))
	env.Publish(events.KindTurn, "s", []byte(`{"turn":3,"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":"yes"}]}`))
	env.AwaitDecided()
	all := env.Compactions("s")
	if len(all) == 0 {
		t.Fatal("no compaction: the test shows nothing")
	}
	var text strings.Builder
	for _, m := range all[len(all)-1].Messages {
		text.Write(m)
	}
	at := regexp.MustCompile(`kept as turn (\d+), message (\d+)`).FindStringSubmatch(text.String())
	if at == nil || strings.Contains(text.String(), "first line of the output") {
		t.Fatalf("no notice, or the whole output: %v %v %.300s", all[len(all)-1].StagesUsed, all[len(all)-1].Edits, text.String())
	}
	got := env.Recall(fmt.Sprintf(`{"session":"s","turn":%s,"index":%s}`, at[1], at[2]))
	if len(got.Messages) != 1 || string(got.Messages[0]) != tool {
		t.Errorf("turn %s, message %s is %d messages, %.200s", at[1], at[2], len(got.Messages), got.Messages)
	}
}

// B14: an output with too many lines is cut when it comes, before the agent answered it, and
// stays retrievable.
func TestRecallOfOutputCutOnArrival(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	tool := fmt.Sprintf(`{"role":"tool","tool_call_id":"c1","content":%q}`, "first line\n"+strings.Repeat("line\n", 3_000)+"last line")
	env.Publish(events.KindTurn, "s", []byte(`{"turn":1,"policy":{"tool_output":{"when":"arrival"}},"messages":[{"role":"user","content":"run it"},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}]},`+tool+`]}`))
	env.AwaitDecided()
	all := env.Compactions("s")
	if len(all) != 1 || all[0].Reason != events.ReasonArrival || len(all[0].Messages) != 3 {
		t.Fatalf("%+v", all)
	}
	cut := string(all[0].Messages[2])
	if strings.Contains(cut, "first line") || !strings.Contains(cut, "last line") || !strings.Contains(cut, "[Output truncated from ") ||
		!strings.Contains(cut, "kept as turn 1, message 2") {
		t.Errorf("%.300s", cut)
	}
	if got := env.Recall(`{"session":"s","turn":1,"index":2}`); len(got.Messages) != 1 || string(got.Messages[0]) != tool {
		t.Errorf("recalled %.200s", got.Messages)
	}
}

// C8: a search finds every message of the session that contains the text, the newest first, with
// any limit, and none of other sessions.
func TestSearch(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	words := []string{"Needle", "nEEDLE (x)", "hay", "", "STRASSE needle needle", "straw"}
	var want []events.Position // newest first
	for n := 1; n <= 37; n++ {
		var messages []string
		for i := range 1 + n%4 {
			word := words[(n*7+i*3)%len(words)]
			messages = append(messages, fmt.Sprintf(`{"role":"user","content":"%s %s %s"}`, strings.Repeat("é", n*9), word, strings.Repeat("…", n*9)))
			if strings.Contains(strings.ToLower(word), "needle") {
				want = append(want, events.Position{Turn: int64(n), Index: int64(i)})
			}
		}
		env.Publish(events.KindTurn, "s", fmt.Appendf(nil, `{"turn":%d,"model":{"context_window":1000000},"messages":[%s]}`, n, strings.Join(messages, ",")))
		env.Publish(events.KindTurn, "other", fmt.Appendf(nil, `{"turn":%d,"messages":[{"role":"user","content":"needle"}]}`, n))
	}
	slices.Reverse(want)
	env.AwaitDecided()
	for _, limit := range []int{1, 3, 10, 100} {
		if d := cmp.Diff(want, searchAll(env, "needle", limit)); d != "" {
			t.Errorf("steps of %d (-published +found):\n%s", limit, d)
		}
	}
	for text, found := range map[string]int{"n.*dle": 0, "NEEDLE (X)": 1, "straw": 1, "text of no message": 0, "(": 1} {
		if got := searchAll(env, text, 100); (len(got) > 0) != (found > 0) {
			t.Errorf("%q is found in %d messages", text, len(got))
		}
	}
}

// searchAll searches until the whole session is searched.
func searchAll(env *workertest.Env, text string, limit int) []events.Position {
	env.T.Helper()
	var all []events.Position
	in := fmt.Sprintf(`{"session":"s","text":%s,"limit":%d`, strconv.Quote(text), limit)
	for before := ""; ; {
		var out events.SearchResponse
		if e := env.Request(events.SubjectRecall, in+before+"}", &out); e != nil {
			env.T.Fatalf("search %q: %+v", text, e)
		}
		for _, h := range out.Hits {
			all = append(all, events.Position{Turn: h.Turn, Index: h.Index})
			if !strings.Contains(strings.ToLower(h.Excerpt), strings.ToLower(text)) || len(h.Excerpt) > 400 || h.Role != dialect.RoleUser {
				env.T.Errorf("%q in %+v", text, h)
			}
		}
		if !out.Known || len(out.Hits) > limit || out.Gone != 0 {
			env.T.Fatalf("search %q: %+v", text, out)
		}
		if out.Before == nil {
			return all
		}
		before = fmt.Sprintf(`,"before":{"turn":%d,"index":%d}`, out.Before.Turn, out.Before.Index)
	}
}

// A search counts the turns that have left the log; a recall of one of them is refused as gone.
func TestRecallOfGone(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		env.Publish(events.KindTurn, "s", workertest.BigTurn(n, 1_000_000, 600))
	}
	env.AwaitDecided()
	s, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= 10; seq++ {
		if seq != 3 {
			if err := s.DeleteMsg(t.Context(), seq); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out events.SearchResponse
	if e := env.Request(events.SubjectRecall, `{"session":"s","text":"LOREM","limit":100}`, &out); e != nil {
		t.Fatal(e)
	}
	var turns []int64
	for _, h := range out.Hits {
		turns = append(turns, h.Turn)
	}
	if d := cmp.Diff([]int64{12, 11, 3}, turns); d != "" || out.Gone != 9 || out.Before != nil {
		t.Errorf("%d gone, before %v, %s", out.Gone, out.Before, d)
	}
	if e := env.Request(events.SubjectRecall, `{"session":"s","turn":2}`, nil); e == nil || e.Code != events.CodeGone {
		t.Errorf("a turn that is gone: %+v", e)
	}
}
