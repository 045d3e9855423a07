package compaction_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
)

// B8, B9, B14: whatever the target, what is left is valid for its provider, not
// empty, no larger than planned, and in order: each part as it came, or cleared, or
// a whole-rune piece of it with a notice. Calls come back with their bytes. A
// second plan finds no content to cut that the first one left.
func TestTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		a := newAgent(t, g.config())
		for _, turn := range g.turns(g.proper()) {
			in, err := a.read(turn)
			if err != nil {
				t.Fatal(err)
			}
			compaction.Apply(a.ledger, in, nil, a.config)
		}
		p := a.ledger.Policy()
		p.Truncate.Enabled = true
		target := measure.Tokens(rapid.IntRange(1, 3_000).Draw(t, "target"))
		plan := makePlan(a.ledger.Visible(), g.format, a.ledger.Rate(), &p, a.ledger.Window(), target)
		raw, err := a.render(planView(plan, g.format))
		if err != nil {
			t.Fatal(err)
		}
		if v := validate.Messages(g.format, raw); len(v) > 0 || len(raw) == 0 {
			t.Fatalf("%v in\n%s", v, lines(raw))
		}
		if got := tokensOf(t, g.format, a.ledger.Rate(), raw); got > plan.After {
			t.Fatalf("planned %d tokens, rendered %d", plan.After, got)
		}
		inOrder(t, a, g.format, raw)
		if plan.After > target && plan.Messages > 4 {
			return // it may cut another half of the messages
		}
		again := makePlan(plan.Entries, g.format, a.ledger.Rate(), &p, a.ledger.Window(), target)
		if again.After != plan.After || len(again.Used) > 0 {
			t.Fatalf("%d -> %d -> %d by %v", plan.Before, plan.After, again.After, again.Used)
		}
	})
}

// inOrder checks that what was rendered is made of what was sent, in its order.
func inOrder(t *rapid.T, a *agent, f events.Format, raw []codec.Raw) {
	var sent []dialect.Part
	for seq := measure.Seq(1); seq <= a.seq; seq++ {
		for _, m := range a.texts[seq] {
			sent = append(sent, m.Parts...)
		}
	}
	msgs, err := f.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Kind == dialect.PartText && strings.HasPrefix(p.Text, measure.TruncateText) {
				continue
			}
			at := slices.IndexFunc(sent, func(s dialect.Part) bool { return comesFrom(p, s) })
			if at < 0 || !utf8.ValidString(p.Text) {
				t.Fatalf("%q comes from nothing that follows in\n%s", p.Text, lines(raw))
			}
			sent = sent[at+1:]
		}
	}
}

// comesFrom reports whether a rendered part is what an edit leaves of a part.
func comesFrom(p, sent dialect.Part) bool {
	if p.Text == measure.MediaText && p.Kind == dialect.PartText && sent.Kind == dialect.PartImage {
		return true
	}
	if sent.Hosted.Kind > 0 && p.Kind == dialect.PartText && strings.HasPrefix(p.Text, measure.ClearText) {
		return true
	}
	if p.Kind != sent.Kind || p.CallID != sent.CallID || p.Images != sent.Images || !bytes.Equal(p.Args, sent.Args) {
		return false
	}
	if head, _, ok := strings.Cut(p.Text, "...\n[Content cut to fit"); ok {
		return strings.HasPrefix(sent.Text, head)
	}
	if head, ok := strings.CutSuffix(p.Text, "..."); ok && codec.Units(p.Text) < measure.NoticeFrom && p.Kind == sent.Kind {
		return strings.HasPrefix(sent.Text, head)
	}
	if at := limited.FindStringIndex(p.Text); at != nil {
		kept, end := p.Text[:at[0]], strings.TrimLeft(p.Text[at[1]:], "\n")
		return strings.HasPrefix(sent.Text, kept) && strings.HasSuffix(sent.Text, end) || end == "" && hasLines(sent.Text, kept)
	}
	return p.Text == sent.Text || p.Kind == dialect.PartResult && strings.HasPrefix(p.Text, "[")
}

// hasLines reports whether a text has the lines of another one that has marks where some are left out.
func hasLines(text, kept string) bool {
	for part := range strings.SplitSeq(kept, "…\n") {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// limited finds what a limited output reports of it.
var limited = regexp.MustCompile(`\n\n\[(?:Output truncated from|\.\.\. \d+ bytes omitted)[^?]*?kept as turn \d+, message \d+(?: \.\.\.)?\]`)

// B9: of a content with several texts the first stay. Images, reasoning, results
// with images, words of the system and arguments keep their bytes.
func TestTrimParts(t *testing.T) {
	p := withoutSummaries()
	p.Profile, p.Prune.ToTarget = "seed", false
	a := newAgent(t, configOf(t, p))
	long := func(s string) string { return strings.Repeat(s, 4000/len(s)) }
	text := func(s string) object { return object{"type": "text", "text": s} }
	image := object{"type": "image", "source": object{"type": "url", "url": "https://example.com/a.png"}}
	sent := raws(
		object{"role": "user", "content": []object{text("Look. "), image, text(long("First. ")), text(long("Second. ")), image}},
		object{"role": "assistant", "content": []object{
			{"type": "thinking", "thinking": long("Hm. "), "signature": "c2ln"},
			text(long("I see. ")),
			{"type": "tool_use", "id": "a", "name": "shot", "input": object{"script": long("go ")}},
		}},
		object{"role": "user", "content": []object{
			{"type": "tool_result", "tool_use_id": "a", "content": []object{text(long("Seen. ")), image}},
		}},
		object{"role": "assistant", "content": "Done."},
	)
	outs := a.publish(object{
		"turn": 1, "format": "anthropic", "messages": sent,
		"model": object{"provider": "anthropic", "name": "claude-opus-5", "context_window": 13_000, "max_output_tokens": 1_000},
	})
	if len(outs) != 1 || outs[0].View == nil {
		t.Fatalf("got %+v", outs)
	}
	got, err := a.render(outs[0].View)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(got[0], []byte("Second.")) || !bytes.Contains(got[0], []byte("First. First.")) || bytes.Count(got[0], []byte("a.png")) != 2 {
		t.Errorf("got %s", got[0])
	}
	for i := range got[1:] {
		if !bytes.Equal(got[i+1], sent[i+1]) {
			t.Errorf("message %d is %s", i+1, got[i+1])
		}
	}
}
