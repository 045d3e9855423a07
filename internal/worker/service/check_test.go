package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// check requests whether a call fits, and fails the test on a refusal.
func check(env *workertest.Env, session, more string) events.CheckResponse {
	env.T.Helper()
	var out events.CheckResponse
	if e := env.Request(events.SubjectCheck, fmt.Sprintf(`{"session":%q%s}`, session, more), &out); e != nil {
		env.T.Fatalf("check %s%s: %s %s", session, more, e.Code, e.Message)
	}
	return out
}

// A10: the budget that a check returns for messages before a call is the one that stats
// return once they are published, in a new session and in one with a history. A check changes
// nothing.
func TestCheckMatchesStats(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	const model = `"provider":"openai","model":"gpt-4o","context_window":16000`
	for n := 1; n <= 3; n++ {
		data := workertest.Turn(n)
		decoded, err := events.DecodeTurn(data)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := codec.Marshal(decoded.Messages)
		if err != nil {
			t.Fatal(err)
		}
		before := check(env, "s1", "")
		got := check(env, "s1", `,`+model+`,"messages":`+string(messages))
		if n > 1 && !cmp.Equal(env.Stats("s1").Budget, before.Budget) {
			t.Errorf("turn %d: checking changed %s", n, cmp.Diff(env.Stats("s1").Budget, before.Budget))
		}
		if got.Known != (n > 1) || got.Through.Turn != int64(n-1) || !got.Fits || got.Added < 500 {
			t.Errorf("turn %d: %+v", n, got)
		}
		env.Publish(events.KindTurn, "s1", data)
		env.AwaitDecided()
		want := env.Stats("s1").Budget
		want.Breakdown.CurrentPrompt, want.Breakdown.History = got.Added, want.Breakdown.History-got.Added
		if diff := cmp.Diff(want, got.Budget); diff != "" {
			t.Errorf("turn %d (-stats after it +check before it):\n%s", n, diff)
		}
	}
}

// A10: a check reports whether a call fits, and how many tokens are too many. Tokens that the
// caller gives, system prompt, tools and another model count. B15: of attachments the smallest
// are taken first.
func TestCheck(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	env.AwaitDecided()
	bare := check(env, "s1", "")
	if !bare.Known || !bare.Fits || bare.Level != events.LevelOK || bare.NeedsCompaction || bare.Added != 0 || bare.Attachments != nil {
		t.Errorf("without anything added: %+v", bare)
	}
	full := check(env, "s1", fmt.Sprintf(`,"tokens":%d`, bare.Room))
	if !full.Fits || full.Room != 0 || !full.NeedsCompaction || full.Level != events.LevelBlocking || full.Added != bare.Room {
		t.Errorf("with all the room taken: %+v", full)
	}
	if over := check(env, "s1", fmt.Sprintf(`,"tokens":%d`, bare.Room+7)); over.Fits || over.Room != -7 {
		t.Errorf("with 7 tokens too many: %+v", over)
	}
	text := strings.Repeat("be brief ", 100)
	if got := check(env, "s1", fmt.Sprintf(`,"system":%q,"tools":[{"name":%q}]`, text, text)); got.Budget.Breakdown.SystemPrompt < 100 || got.Budget.Breakdown.ToolDefinitions < 100 || got.Added != 0 {
		t.Errorf("with system prompt and tools: %+v", got)
	}
	if got := check(env, "s1", `,"provider":"openai","model":"gpt-4"`); got.Budget.ContextWindow != 8192 {
		t.Errorf("with gpt-4: %+v", got)
	}
	files := check(env, "s1", `,"attachments":[{"type":"text","bytes":4000000},{"type":"PDF","bytes":100000},{"bytes":400}]`)
	want := []events.AttachmentCost{{Tokens: 1_330_000}, {Tokens: 1_000, Send: true}, {Tokens: 133, Send: true}}
	if diff := cmp.Diff(want, files.Attachments); diff != "" || files.Fits || files.Added != 1_331_133 {
		t.Errorf("with attachments: %+v %s", files, diff)
	}
	if got := check(env, "unknown", ``); got.Known || !got.Fits || got.Budget.ContextWindow != 128_000 || got.Budget.EstimatedInput != 0 {
		t.Errorf("of an unknown session: %+v", got)
	}
	big := `,"messages":[{"role":"user","content":"` + strings.Repeat("many words ", 30_000) + `"}]`
	if got := check(env, "s1", big); got.Fits || got.Added < 50_000 {
		t.Errorf("with a message of 330 kB: %+v", got)
	}
	for in, code := range map[string]events.Code{
		`,"messages":{}`:                     events.CodeBadType,
		`,"messages":[7]`:                    events.CodeBadMessage,
		`,"messages":[{"role":"tool_call"}]`: events.CodeForeignDialect,
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

		`,"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, events.MaxTurnMessages) + `{}]`:                                               events.CodeTooManyMessages,
		`,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, events.MaxTurnParts) + `{"type":"text","text":"a"}]}]`: events.CodeTooManyMessages,
	} {
		if e := env.Request(events.SubjectCheck, `{"session":"s1"`+in+`}`, nil); e == nil || e.Code != code || e.Hint == "" {
			t.Errorf("%.60s: got %+v, want %s", in, e, code)
		}
	}
}
