package llm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/secrets"
	"compactd/internal/testkit/summaries"
)

func useModels(models ...model.Model) *llm.Summarizer { return llm.New(models...) }

// C1, C5, C6: what a model writes becomes the text; record, model, prompt and
// usage stand beside it.
func TestLLMUsesTheModel(t *testing.T) {
	m := summaries.Echo()
	in := summarize.Input{Messages: summaries.BusyRange(1, 60), MaxUnits: 20_000}
	got, err := useModels(m).Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	summaries.CheckSize(t, got, in.MaxUnits)
	if got.Model != "fake/echo" || got.Prompt != llm.PromptVersion || got.Usage.Input != 1_000 {
		t.Errorf("model %q, prompt %q, usage %v", got.Model, got.Prompt, got.Usage)
	}
	if diff := cmp.Diff(summarizetest.Record(in), got.Record); diff != "" {
		t.Errorf("not the record that code makes:\n%s", diff)
	}
	if !strings.Contains(got.Text, "- I decided to do step 19 of range 1 in two parts.") {
		t.Errorf("the model's lines are not in the text:\n%s", got.Text)
	}
	if strings.Contains(got.Text, "In order:") {
		t.Error("the analysis is stored")
	}
	if r := m.Requests[0]; r.MaxOutputTokens != 8_000 || strings.Contains(r.System, "step 1") {
		t.Errorf("%d tokens requested; history in the system text: %v", r.MaxOutputTokens, strings.Contains(r.System, "step 1"))
	}
}

// fallback is a model that does not answer well, and the reason or kind of it.
type fallback struct {
	name  string
	model *summaries.Fake
	want  string
}

// usage is the input that the model counts.
func (f *fallback) usage() int64 {
	r, _ := f.model.Answer(model.Request{})
	return r.Usage.Input
}

// C5: the next model answers for one that does not, the embedded summarizer for
// the last; what the attempts cost is summed up, and each is reported.
func TestLLMFallsBack(t *testing.T) {
	in := summarize.Input{Messages: summaries.BusyRange(1, 30), MaxUnits: 20_000}
	bad := func(finish model.Finish, text string) model.Reply {
		r := summaries.Finished(text)
		r.Finish = finish
		return r
	}
	for _, c := range []fallback{
		{"empty", summaries.Always("bad", summaries.Finished(" \n"), nil), "empty"},
		{"cut", summaries.Always("bad", bad(model.FinishLength, "<analysis>"), nil), "cut"},
		{"tool call", summaries.Always("bad", bad(model.FinishTool, ""), nil), "tool_call"},
		{"refusal", summaries.Always("bad", bad(model.FinishRefusal, "no"), nil), "refused"},
		{"refusal in words", summaries.Always("bad", summaries.Finished("I'm sorry, but I can't help with that."), nil), "bad_form"},
		{"other end", summaries.Always("bad", bad(model.FinishOther, "x"), nil), "stopped"},
		{"endless analysis", summaries.Always("bad", summaries.Finished("<analysis> and so on"), nil), "bad_form"},
		{"no headings", summaries.Always("bad", summaries.Finished("The user wanted a parser."), nil), "bad_form"},
		{"endless", summaries.Always("bad", summaries.Finished(strings.Repeat("## Goal and intent\n- x\n", 40_000)), nil), "too_large"},
		{"not smaller", summaries.Always("bad", summaries.Finished(summaries.Write(map[string][]string{"Goal and intent": longLines(100)})), nil), "not_smaller"},
		{"key", summaries.Always("bad", model.Reply{}, &model.Error{Kind: model.Auth, Status: 401}), "auth"},
		{"busy", summaries.Always("bad", model.Reply{}, &model.Error{Kind: model.RateLimited, RetryAfter: time.Minute}), "rate_limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen []summarize.Attempt
			n, in := llm.New(c.model, summaries.Echo()), in
			in.OnAttempt = func(a summarize.Attempt) { seen = append(seen, a) }
			if c.want == "not_smaller" {
				in := in
				in.MaxUnits = 200_000
				if _, err := n.Summarize(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			} else {
				got, err := n.Summarize(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if got.Model != "fake/echo" || got.Usage.Input != 1_000+c.usage() {
					t.Errorf("model %s, usage %v", got.Model, got.Usage)
				}
			}
			if len(seen) != 2 || reasonOf(seen[0].Err) != c.want || seen[1].Err != nil {
				t.Errorf("attempts: %v, want the first to be %s", seen, c.want)
			}
			in.OnAttempt = nil
			got, err := useModels(c.model).Summarize(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			want, err := extract.New().Summarize(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if c.want != "not_smaller" {
				want.Usage = events.SummaryUsage{Input: c.usage(), Output: c.usage() / 10}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("not what the embedded summarizer writes:\n%s", diff)
				}
			}
		})
	}
}

func longLines(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%d: %s", i, strings.Repeat("many words that say nothing at all ", 10)))
	}
	return out
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*llm.Unusable](err); ok {
		return string(e.Reason)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return string(e.Kind)
	}
	return fmt.Sprint(err)
}

// A caller that waits long enough receives when to come back; any other has its summary.
func TestLLMMaxWait(t *testing.T) {
	busy := func(after time.Duration) *summaries.Fake {
		return summaries.Always("busy", model.Reply{}, &model.Error{Kind: model.RateLimited, RetryAfter: after})
	}
	in := summarize.Input{Messages: summaries.BusyRange(1, 30), MaxUnits: 20_000, MaxWait: time.Minute}
	_, err := useModels(busy(30*time.Second), busy(10*time.Second), busy(20*time.Second)).Summarize(t.Context(), in)
	if later, ok := errors.AsType[*summarize.RetryAfterError](err); !ok || later.After != 10*time.Second {
		t.Errorf("%v, want to come back after 10 s", err)
	}
	for name, models := range map[string][]model.Model{
		"longer than the wait": {busy(2 * time.Minute)},
		"a fault that stays":   {summaries.Always("key", model.Reply{}, &model.Error{Kind: model.Auth})},
		"an answer of no use":  {summaries.Always("bad", summaries.Finished("no"), nil)},
		"one beside a wait":    {summaries.Always("bad", summaries.Finished("no"), nil), busy(time.Second)},
		"another that answers": {busy(time.Second), summaries.Echo()},
	} {
		if _, err := useModels(models...).Summarize(t.Context(), in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hang := &summaries.Fake{ID: "hang", Bounds: summaries.Wide, Answer: func(model.Request) (model.Reply, error) {
		cancel()
		return model.Reply{}, ctx.Err()
	}}
	if _, err := useModels(hang, summaries.Echo()).Summarize(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

// B18: a prompt takes at most half of what the model has left beside its answer,
// the newest rounds without a gap, and always what came before.
func TestLLMBoundsItsPrompt(t *testing.T) {
	msgs := summaries.BusyRange(1, 900)
	previous := &events.Summary{Text: "## Goal and intent\n- First: build the thing of turn zero (turn 1)\n\n## Constraints and rules\n- Never use floats. (turn 1)\n"}
	for _, window := range []int64{8_000, 16_000, 32_000, 128_000, 1_000_000} {
		m := summaries.Echo()
		m.Bounds = model.Limits{Window: window, MaxOutput: 4_000}
		in := summarize.Input{Messages: msgs, Previous: previous, MaxUnits: 20_000}
		got, err := useModels(m).Summarize(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Model == extract.Model {
			t.Fatalf("window %d: the model was not used", window)
		}
		r := m.Requests[0]
		output := min(4_000, window*35/100)
		if n := int64(len(r.System)+len(r.User)) / 3; n > (window-output)/2 {
			t.Errorf("window %d: a prompt of %d tokens", window, n)
		}
		seen := summaries.ReadMaterial(r.User)
		if !strings.Contains(seen.Blocks["earlier summary"], "build the thing of turn zero") || !strings.Contains(got.Text, "Never use floats.") {
			t.Errorf("window %d: the earlier summary is lost", window)
		}
		first, last := seen.Entries[0].Turn, seen.Entries[len(seen.Entries)-1].Turn
		if last != int(msgs[len(msgs)-1].Turn) {
			t.Errorf("window %d: ends with turn %d", window, last)
		}
		for turn := first; turn <= last; turn++ {
			if !slices.ContainsFunc(seen.Entries, func(e summaries.Entry) bool { return e.Turn == turn }) {
				t.Errorf("window %d: turn %d is missing between %d and %d", window, turn, first, last)
			}
		}
		t.Logf("window %d: turns %d to %d of %d", window, first, last, len(msgs))
	}
}

// B18: a prompt that is too long is tried again without the oldest fifth of its
// rounds, three times at most.
func TestLLMRetriesWithLess(t *testing.T) {
	in := summarize.Input{Messages: summaries.BusyRange(1, 150), MaxUnits: 20_000}
	long := summaries.Always("long", model.Reply{}, &model.Error{Kind: model.TooLong, Status: 400})
	got, err := useModels(long).Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got.Model != extract.Model || len(long.Requests) != 4 {
		t.Errorf("%s wrote after %d calls", got.Model, len(long.Requests))
	}
	var users []int
	for _, r := range long.Requests {
		users = append(users, strings.Count(r.User, "] user\n")+strings.Count(r.User, "] assistant\n"))
	}
	if diff := cmp.Diff([]int{100, 80, 64, 52}, users); diff != "" {
		t.Errorf("rounds in each prompt: %s", diff)
	}
	late := summaries.Echo()
	answer := late.Answer
	late.Answer = func(r model.Request) (model.Reply, error) {
		if len(late.Requests) < 3 {
			return model.Reply{}, &model.Error{Kind: model.TooLong}
		}
		return answer(r)
	}
	if got, err = useModels(late).Summarize(t.Context(), in); err != nil || got.Model != "fake/echo" {
		t.Errorf("%v, %v", got, err)
	}
	if !strings.Contains(late.Requests[2].User, "step 0 of range 1") {
		t.Error("what was left out stands nowhere in the prompt")
	}
}

// C3: ten merges do not grow the summary of a model that repeats all it gets.
func TestLLMTenMerges(t *testing.T) {
	var previous *events.Summary
	sizes := make([]int, 11)
	for g := 1; g <= 10; g++ {
		in := summarize.Input{Messages: summaries.BusyRange(g, 90), Previous: previous, MaxUnits: 12_000}
		s, err := useModels(summaries.Echo()).Summarize(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if s.Model != "fake/echo" {
			t.Fatalf("merge %d: written by %s", g, s.Model)
		}
		summaries.CheckSize(t, s, in.MaxUnits)
		sizes[g] = codec.Units(s.Message().Parts[0].Text)
		previous = s
	}
	t.Logf("units after 1 to 10 merges: %v", sizes[1:])
	if sizes[10]*10 > sizes[2]*13 {
		t.Errorf("%d units after ten merges, %d after two", sizes[10], sizes[2])
	}
	if strings.Count(previous.Text, "## Goal and intent") != 1 || strings.Count(previous.Text, "- First: ") != 1 {
		t.Errorf("the text is nested:\n%s", previous.Text)
	}
	if !strings.Contains(previous.Text, "- First: Please do step 0 of range 1,") {
		t.Error("the first request is lost")
	}
}

// The same input gives the same prompt and the same summary; both keep to their
// bounds, and no secret is in either (C9).
func TestLLMProperties(t *testing.T) {
	all := secrets.All()
	rapid.Check(t, func(t *rapid.T) {
		first, second := summaries.DrawConversation(t, 1), summaries.DrawConversation(t, 40)
		c := rapid.SampledFrom(all).Draw(t, "secret")
		where := rapid.SampledFrom([]dialect.Role{dialect.RoleUser, dialect.RoleAssistant, dialect.RoleTool}).Draw(t, "where")
		second.Add(60, where, dialect.Part{Kind: dialect.PartText, Text: c.Text + " stop"})
		limit := rapid.Int64Range(300, 30_000).Draw(t, "max")
		var previous *events.Summary
		for _, conversation := range []*summaries.Conversation{first, second} {
			in := conversation.Input(previous, limit)
			one, two := summaries.Echo(), summaries.Echo()
			s, err := useModels(one).Summarize(t.Context(), in)
			again, err2 := useModels(two).Summarize(t.Context(), in)
			if diff := cmp.Diff(one.Requests, two.Requests); diff != "" {
				t.Fatalf("two prompts: %s", diff)
			}
			if diff := cmp.Diff(s, again); diff != "" || !errors.Is(err2, err) {
				t.Fatalf("two summaries: %s %v %v", diff, err, err2)
			}
			for _, r := range one.Requests {
				if secrets.Leak(r.User, c.Value) {
					t.Fatalf("%s in the prompt", c.Kind)
				}
			}
			if err != nil {
				return
			}
			message := s.Message().Parts[0].Text
			if int64(codec.Units(message)) > limit {
				t.Fatalf("%d units, room for %d", codec.Units(message), limit)
			}
			if secrets.Leak(message, c.Value) {
				t.Fatalf("%s in the summary", c.Kind)
			}
			previous = s
		}
	})
}
