package compaction_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/stored"
)

// cutsInTest is one of how many cuts TestAdopted takes, so that it takes seconds
// with -race too. TestFaultAdopted takes them all (make test-faults).
const cutsInTest = 40

// E8, B10, B13: every real session, cut at any message and adopted as a running
// history, then shrunk by a model with a smaller window to several sizes.
func TestAdopted(t *testing.T) { testAdopted(t, cutsInTest) }

// testAdopted takes one in every cuts, chosen by session and place alone.
func testAdopted(t *testing.T, every uint32) {
	for _, s := range thinkingSessions(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			all := messagesOf(t, s)
			for n := 1; n <= len(all); n++ {
				h := fnv.New32a()
				fmt.Fprintf(h, "%s %d", s.Name, n)
				if h.Sum32()%every == 0 {
					newAdopted(t, s.Format, all[:n]).shrink()
				}
			}
		})
	}
}

// thinkingSessions are the real sessions with what their models thought.
func thinkingSessions(t *testing.T) []transcript.Session {
	t.Helper()
	return sessionsBy(t, transcripttest.ReadThinking)
}

// messagesOf lists the messages of a session as their provider takes them.
func messagesOf(t *testing.T, s transcript.Session) (all []codec.Raw) {
	t.Helper()
	for _, turn := range s.Turns {
		for _, raw := range turn.Messages {
			if s.Format == events.Anthropic {
				raw = completed(t, raw)
			}
			all = append(all, raw)
		}
	}
	return all
}

// completed makes up for what was not recorded: each thinking block gets a
// signature of its own, and blank texts, as which a part of a stream was recorded,
// go.
func completed(t *testing.T, raw codec.Raw) codec.Raw {
	t.Helper()
	var m struct {
		Role    dialect.Role `json:"role"`
		Content []codec.Raw  `json:"content"`
	}
	if err := codec.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	var blocks []codec.Raw
	for _, block := range m.Content {
		var b struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		}
		if err := codec.Unmarshal(block, &b); err != nil {
			t.Fatal(err)
		}
		switch {
		case b.Type == "thinking":
			block = raws(object{"type": b.Type, "thinking": b.Thinking, "signature": fmt.Sprintf("sig %x", dialect.KeyOf(b.Thinking))})[0]
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			continue
		}
		blocks = append(blocks, block)
	}
	return raws(object{"role": m.Role, "content": blocks})[0]
}

// adopted is a session that began with a whole history.
type adopted struct {
	*witness
	history []codec.Raw
	read    []dialect.Message
	rows    []compaction.Row
	size    int64 // estimated input, in tokens
	proper  bool  // its provider takes the history as it was recorded
}

func newAdopted(t *testing.T, f events.Format, history []codec.Raw) *adopted {
	t.Helper()
	w := &witness{agent: newAgent(t, configOf(t, withoutSummaries()))}
	outs := w.agent.publish(object{"replaces_from": 1, "format": f, "messages": history, "model": model(f, 1<<40)})
	if len(outs) > 0 {
		t.Fatalf("emitted %+v of an empty window", outs[0].Body)
	}
	rows, err := stored.Rows(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	return &adopted{witness: w, history: history, read: w.texts[1], rows: rows, size: w.ledger.Budget().EstimatedInput, proper: len(validate.Messages(f, history)) == 0}
}

func model(f events.Format, window int64) object {
	return object{"provider": string(f), "name": "claude-opus-5", "context_window": window, "max_output_tokens": window / 5}
}

// shrink moves the session to smaller models, each time from the whole history.
func (a *adopted) shrink() {
	compactions := 0
	for _, percent := range []int64{110, 50, 12} { // of the history that the input has room for
		l, err := stored.ReadLedger(a.ledger.Address, a.rows)
		if err != nil {
			a.t.Fatal(err)
		}
		a.ledger, a.seq = l, 1
		f := l.Format()
		for _, o := range a.agent.publish(object{"turn": 2, "messages": []object{}, "model": model(f, max(a.size*percent/100, 10)*5/4)}) {
			if c, ok := o.Body.(*events.Compacted); ok && a.emitted(c, o.View) {
				compactions++
			}
		}
		a.returns()
	}
	if len(a.history) > 8 && compactions == 0 {
		a.t.Fatalf("%d messages were never too many", len(a.history))
	}
}

// emitted checks the result of a compaction of the history, and reports whether there
// was one.
func (a *adopted) emitted(c *events.Compacted, v *render.View) bool {
	if !c.Compacted {
		if tooLarge := !c.Budget.WithinBudget; tooLarge != (c.Code == events.CodeBudgetExceeded) {
			a.t.Fatalf("not compacted: %q, %+v", c.Code, c.Budget)
		}
		return false
	}
	raw, err := a.render(v)
	if err != nil {
		a.t.Fatal(err)
	}
	a.reached(c)
	a.valid(raw)
	a.tokens(c, raw)
	a.stable(c)
	a.restoredWithin(c)
	if a.proper {
		a.keepsOpenCalls(raw)
	}
	after, err := a.ledger.Format().ReadAll(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	a.paired(after)
	a.ordered(raw)
	a.thought(after)
	return true
}

// reached checks that a history above its target had every stage, and logs where
// the next call does not fit.
func (a *adopted) reached(c *events.Compacted) {
	tried := len(c.Stages) > 0 && c.Stages[len(c.Stages)-1].Name == events.StageTruncate
	if c.TokensAfter > c.TargetTokens && !tried || !c.Budget.WithinBudget && c.Code != events.CodeBudgetExceeded {
		a.t.Fatalf("%q: %d -> %d tokens, target %d of %d, %+v", c.Code, c.TokensBefore, c.TokensAfter, c.TargetTokens, c.AvailableInput, c.Stages)
	}
}

// paired checks that every call has its result, as far as the history had one, and
// every result its call. Some sessions use an id twice.
func (a *adopted) paired(after []dialect.Message) {
	had := pairsOf(a.read)
	for id, now := range pairsOf(after) {
		was := had[id]
		if open := now.calls - now.results; open != 0 && open != was.calls-was.results || now.calls > was.calls {
			a.t.Fatalf("call %q: was %+v, is %+v", id, was, now)
		}
	}
}

type pairs struct{ calls, results int }

// pairsOf counts the calls and results of each id.
func pairsOf(msgs []dialect.Message) map[string]pairs {
	out := map[string]pairs{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			n := out[p.CallID]
			switch p.Kind {
			case dialect.PartCall:
				n.calls++
			case dialect.PartResult:
				n.results++
			}
			out[p.CallID] = n
		}
	}
	return out
}

// ordered checks that messages which are there byte for byte stand in their order.
func (a *adopted) ordered(raw []codec.Raw) {
	at := 0
	for _, r := range raw {
		same := func(x codec.Raw) bool { return bytes.Equal(r, x) }
		if i := slices.IndexFunc(a.history[at:], same); i >= 0 {
			at += i + 1
		} else if slices.ContainsFunc(a.history, same) {
			a.t.Fatalf("out of order: %.200s", r)
		}
	}
}

// thought checks that thinking is there byte for byte, with the calls it led to,
// or gone with them.
func (a *adopted) thought(after []dialect.Message) {
	before, all := map[string][]string{}, []string(nil) // by call
	for _, m := range a.read {
		all = append(all, thinkingOf(m)...)
		for _, id := range callsOf(m) {
			before[id] = thinkingOf(m)
		}
	}
	for _, m := range after {
		for _, x := range thinkingOf(m) {
			if !slices.Contains(all, x) {
				a.t.Fatalf("no turn has the thought %.200s", x)
			}
		}
		for _, id := range callsOf(m) {
			if want, got := before[id], thinkingOf(m); !slices.Equal(want, got) {
				a.t.Fatalf("the thinking before call %s was\n%q\nand is\n%q", id, want, got)
			}
		}
	}
}

func callsOf(m dialect.Message) (ids []string) {
	for _, p := range m.Parts {
		if p.Kind == dialect.PartCall {
			ids = append(ids, p.CallID)
		}
	}
	return ids
}

func thinkingOf(m dialect.Message) (out []string) {
	for _, p := range m.Parts {
		if p.Kind == dialect.PartThinking {
			out = append(out, string(p.Raw))
		}
	}
	return out
}

// returns checks that a rewind gives the history as it was adopted.
func (a *adopted) returns() {
	a.seq++
	r := a.reader(events.KindRewind, object{"generation": 0})()
	view := a.ledger.View()
	outs, _ := compaction.Decide(a.ledger, r, a.config)
	for _, o := range outs {
		if o.View != nil {
			view = o.View
		}
	}
	raw, err := a.render(view)
	if err != nil {
		a.t.Fatal(err)
	}
	was, is := a.bytesOf(a.history), a.bytesOf(raw)
	if n := firstDifference(was, is); n >= 0 {
		a.t.Fatalf("at %d of %d and %d a rewind differs:\n%s", n, len(was), len(is), cmp.Diff(was[n:min(n+1, len(was))], is[n:min(n+1, len(is))]))
	}
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// bytesOf lists the messages of a history; of one that its provider would refuse as
// it was recorded, two users in a row or a call without a result, its parts.
func (a *adopted) bytesOf(raw []codec.Raw) (out []string) {
	if a.proper {
		for _, r := range raw {
			out = append(out, string(r))
		}
		return out
	}
	msgs, err := a.ledger.Format().ReadAll(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Text != measure.AnswerText {
				out = append(out, fmt.Sprintf("%s %s %s", m.Role, p.Text, p.Raw))
			}
		}
	}
	return out
}
