package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/snippet"
)

// Limits of a model that does not state them, in tokens: the window of unknown models, and an answer that
// most models can give.
const (
	unknownWindow = 128_000
	unknownOutput = 4_096
	// outputPercent is the largest share of an answer in a window.
	outputPercent = 35
	// maxRetries bounds the shorter prompts after refusals as too long, each without dropPercent of the
	// rounds (B18).
	maxRetries  = 3
	dropPercent = 20
	// minWords and unitsPerWord turn room into words; answerPercent is the share of
	// the tokens of an answer that the words of the summary may have, so that the
	// analysis has some too.
	minWords      = 100
	unitsPerWord  = 7
	answerPercent = 40
)

// promptBuilder is one input, read and made ready for any model.
type promptBuilder struct {
	in     summarize.Input
	digest *extract.Digest
	rounds []round
	units  int // of all messages and the previous summary
}

func newPromptBuilder(ctx context.Context, in summarize.Input) *promptBuilder {
	n := &promptBuilder{in: in, digest: extract.ScanUntil(ctx, &in), rounds: rounds(&in)}
	for i := range in.Messages {
		for k := range in.Messages[i].Parts {
			p := &in.Messages[i].Parts[k]
			n.units += codec.Units(p.Text) + len(p.Args)
		}
	}
	if n.digest.Previous != nil {
		n.units += codec.Units(n.digest.Previous.Text)
	}
	return n
}

// complete lets one model write, with a shorter prompt after each refusal as too long.
func (n *promptBuilder) complete(ctx context.Context, m model.Model) (*events.Summary, events.SummaryUsage, error) {
	room, output := bounds(m)
	frame := prompt{earlier: "-", history: "-", focus: n.in.Focus, words: maxAnswerTokens}.String()
	budget := room - tokens(systemPrompt+frame)
	if budget <= 0 {
		return nil, events.SummaryUsage{}, errSmall
	}
	first := n.newest(budget)
	shorter := func() bool {
		more := first < len(n.rounds)-1
		if more {
			first += max(1, (len(n.rounds)-first)*dropPercent/100)
		}
		return more
	}
	r, prompt, spent, err := ask(ctx, m, model.Request{Tenant: n.in.Tenant, System: systemPrompt, MaxOutputTokens: output}, func() string { return n.prompt(first, budget, output) }, shorter)
	if err != nil {
		return nil, spent, err
	}
	s, err := n.accept(&r, prompt)
	if err != nil {
		return nil, spent, err
	}
	s.Model, s.Prompt = m.Name(), PromptVersion
	return s, spent, nil
}

var errSmall = &model.Error{Kind: model.TooLong, Err: errors.New("the window is too small for the instructions")}

// bounds are the tokens of a model's prompt, instructions included, and of its answer.
func bounds(m model.Model) (prompt, output int64) {
	l := m.Limits()
	window := cmp.Or(max(0, l.Window), unknownWindow)
	output = min(maxAnswerTokens, cmp.Or(max(0, l.MaxOutput), unknownOutput), window*outputPercent/100)
	return (window - output) / 2, output
}

// ask lets a model answer a prompt, and a shorter one after each refusal as too long. It returns the prompt
// that was answered, and what all of them used.
func ask(ctx context.Context, m model.Model, r model.Request, prompt func() string, shorter func() bool) (out model.Reply, used string, spent events.SummaryUsage, err error) {
	for try := 0; ; try++ {
		r.User = prompt()
		out, err = model.Complete(ctx, m, r)
		spent = sum(spent, out.Usage)
		if e, ok := errors.AsType[*model.Error](err); ok && e.Kind == model.TooLong && try < maxRetries && shorter() {
			continue
		}
		if err != nil {
			err = fmt.Errorf("complete: %w", err)
		}
		return out, r.User, spent, err
	}
}

// newest returns the first of the newest rounds that a prompt has room for, with
// a quarter of budget kept for what came before.
func (n *promptBuilder) newest(budget int64) int {
	left := budget - budget/4
	first := len(n.rounds)
	for first > 0 && n.rounds[first-1].tokens <= left {
		first--
		left -= n.rounds[first].tokens
	}
	return min(first, max(0, len(n.rounds)-1))
}

// prompt shows the rounds from first on. Older rounds are shown as the embedded
// summarizer condenses them, merged with the previous summary.
func (n *promptBuilder) prompt(first int, budget, output int64) string {
	p := prompt{earlier: n.earlier(first, budget/4), focus: n.in.Focus, words: n.words(output)}
	var history strings.Builder
	for i, r := range n.rounds[first:] {
		text := r.text
		if i == 0 && r.tokens > budget {
			text = indented(snippet.CutMiddle(text, int(budget)))[1:] // a line that begins in the middle of one must not pass for ours
		}
		history.WriteString(text)
	}
	p.history = history.String()
	return p.String()
}

// words is the length that the prompt requests: the words that fit, and at most a part of the model's output.
func (n *promptBuilder) words(output int64) int {
	room := summarize.Room(n.in.MaxUnits, n.digest.Record(n.in.Limit()))
	return min(max(minWords, room/unitsPerWord), int(output*answerPercent/100))
}

// earlier is the summary of the messages before the round first, in at most limit tokens.
func (n *promptBuilder) earlier(first int, limit int64) string {
	if first == 0 && n.digest.Previous == nil {
		return ""
	}
	if first == 0 && tokens(n.digest.Previous.Text) <= limit {
		return n.digest.Previous.Text
	}
	var all *extract.Sections
	if first > 0 {
		in := n.in
		in.Messages, in.Previous = in.Messages[:n.rounds[first].from], n.digest.Previous
		all = extract.Scan(&in).Sections()
	} else {
		all = extract.Parse(n.digest.Previous.Text)
	}
	text := all.Fit(int(limit*asciiPerToken), n.digest.Focus)
	if tokens(text) > limit {
		text = all.Fit(int(limit), n.digest.Focus)
	}
	return text
}
