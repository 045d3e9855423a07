package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/worker"
)

// check requests whether a call fits, and fails the test on a refusal.
func (w *world) check(session, more string) events.CheckResponse {
	w.t.Helper()
	var out events.CheckResponse
	if e := w.request(events.SubjectCheck, fmt.Sprintf(`{"session":%q%s}`, session, more), &out); e != nil {
		w.t.Fatalf("check %s%s: %s %s", session, more, e.Code, e.Message)
	}
	return out
}

func (w *world) stats(session string) events.StatsResponse {
	w.t.Helper()
	var out events.StatsResponse
	if e := w.request(events.SubjectStats, fmt.Sprintf(`{"session":%q}`, session), &out); e != nil {
		w.t.Fatalf("stats %s: %s %s", session, e.Code, e.Message)
	}
	return out
}

// A10: what a check says of messages before a call is what stats say once they are
// published, in a new session and in one with a history; and it changes nothing.
func TestCheckForesees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	const model = `"provider":"openai","model":"gpt-4o","context_window":16000`
	for n := 1; n <= 3; n++ {
		data := turn(n)
		decoded, err := events.DecodeTurn(data)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := events.Marshal(decoded.Messages)
		if err != nil {
			t.Fatal(err)
		}
		before := w.check("s1", "")
		got := w.check("s1", `,`+model+`,"messages":`+string(messages))
		if n > 1 && !cmp.Equal(w.stats("s1").Budget, before.Budget) {
			t.Errorf("turn %d: checking changed %s", n, cmp.Diff(w.stats("s1").Budget, before.Budget))
		}
		if got.Known != (n > 1) || got.Through.Turn != int64(n-1) || !got.Fits || got.Added < 500 {
			t.Errorf("turn %d: %+v", n, got)
		}
		w.publish(events.KindTurn, "s1", data)
		w.settle()
		want := w.stats("s1").Budget
		want.Breakdown.CurrentPrompt, want.Breakdown.History = got.Added, want.Breakdown.History-got.Added
		if diff := cmp.Diff(want, got.Budget); diff != "" {
			t.Errorf("turn %d (-told after it +foreseen):\n%s", n, diff)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// A10: what does not fit is reported, with how much is too much; tokens of the caller,
// system prompt, tools and another model count; B15: attachments, the smallest first.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	w.publish(events.KindTurn, "s1", turn(1))
	w.settle()
	bare := w.check("s1", "")
	if !bare.Known || !bare.Fits || bare.Level != events.LevelOK || bare.NeedsCompaction || bare.Added != 0 || bare.Attachments != nil {
		t.Errorf("as it stands: %+v", bare)
	}
	full := w.check("s1", fmt.Sprintf(`,"tokens":%d`, bare.Room))
	if !full.Fits || full.Room != 0 || !full.NeedsCompaction || full.Level != events.LevelBlocking || full.Added != bare.Room {
		t.Errorf("with all the room taken: %+v", full)
	}
	if over := w.check("s1", fmt.Sprintf(`,"tokens":%d`, bare.Room+7)); over.Fits || over.Room != -7 {
		t.Errorf("with 7 tokens too many: %+v", over)
	}
	text := strings.Repeat("be brief ", 100)
	if got := w.check("s1", fmt.Sprintf(`,"system":%q,"tools":[{"name":%q}]`, text, text)); got.Budget.Breakdown.SystemPrompt < 100 || got.Budget.Breakdown.ToolDefinitions < 100 || got.Added != 0 {
		t.Errorf("with system prompt and tools: %+v", got)
	}
	if got := w.check("s1", `,"provider":"openai","model":"gpt-4"`); got.Budget.ContextWindow != 8192 {
		t.Errorf("with gpt-4: %+v", got)
	}
	files := w.check("s1", `,"attachments":[{"type":"text","bytes":4000000},{"type":"PDF","bytes":100000},{"bytes":400}]`)
	want := []events.AttachmentCost{{Tokens: 1_330_000}, {Tokens: 1_000, Send: true}, {Tokens: 133, Send: true}}
	if diff := cmp.Diff(want, files.Attachments); diff != "" || files.Fits || files.Added != 1_331_133 {
		t.Errorf("with attachments: %+v %s", files, diff)
	}
	if got := w.check("nobody", ``); got.Known || !got.Fits || got.Budget.ContextWindow != 128_000 || got.Budget.EstimatedInput != 0 {
		t.Errorf("of nobody: %+v", got)
	}
	big := `,"messages":[{"role":"user","content":"` + strings.Repeat("many words ", 30_000) + `"}]`
	if got := w.check("s1", big); got.Fits || got.Added < 50_000 {
		t.Errorf("with a message of 330 kB: %+v", got)
	}
	for in, code := range map[string]events.Code{
		`,"messages":{}`:                     events.CodeBadType,
		`,"messages":[7]`:                    events.CodeBadMessage,
		`,"messages":[{"role":"tool_call"}]`: events.CodeBadMessage,
		`,"tokens":-1`:                       events.CodeOutOfRange,
		`,"tokens":"7"`:                      events.CodeBadType,
		`,"system":7`:                        events.CodeBadType,
		`,"format":"xml"`:                    events.CodeUnknownFormat,
		`,"format":"anthropic"`:              events.CodeFormatChanged,
		`,"attachments":[{"type":"pdf"}]`:    events.CodeMissingField,
		`,"attachments":[{"bytes":"7"}]`:     events.CodeBadType,
		`,"attachments":[7]`:                 events.CodeBadType,
		`,"max_output_tokens":16000`:         events.CodeOutOfRange,
		`,"messages":[],"messages":[]`:       events.CodeDuplicateKey,
		`,"attachments":[` + strings.Repeat(`{"bytes":1},`, 100) + `{"bytes":1}]`: events.CodeTooLarge,
	} {
		if e := w.request(events.SubjectCheck, `{"session":"s1"`+in+`}`, nil); e == nil || e.Code != code || e.Hint == "" {
			t.Errorf("%.60s: got %+v, want %s", in, e, code)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
