package summarize_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// fake is a model in this process. It records its requests.
type fake struct {
	name     string
	limits   model.Limits
	answer   func(model.Request) (model.Reply, error)
	requests []model.Request
}

func (f *fake) Name() string         { return "fake/" + f.name }
func (f *fake) Limits() model.Limits { return f.limits }

func (f *fake) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	f.requests = append(f.requests, r)
	return f.answer(r)
}

var wide = model.Limits{Window: 200_000, MaxOutput: 8_000}

// echo is a model that does what it is requested, in a plain way: each section is
// made of lines of the prompt.
func echo() *fake {
	return &fake{name: "echo", limits: wide, answer: func(r model.Request) (model.Reply, error) {
		return finished(readMaterial(r.User).summary()), nil
	}}
}

// finished is an answer that the model ended itself.
func finished(text string) model.Reply {
	return model.Reply{Text: text, Model: "echo-1", Usage: events.SummaryUsage{Input: 1_000, Output: 100}, Finish: model.FinishStop}
}

// always answers the same.
func always(name string, r model.Reply, err error) *fake {
	return &fake{name: name, limits: wide, answer: func(model.Request) (model.Reply, error) { return r, err }}
}

// titles are the headings that the instructions name.
var titles = []string{
	"Goal and intent", "Constraints and rules", "Decisions", "Concepts and discoveries", "Files and data", "Errors and fixes",
	"Open tasks and questions", "How the task evolved", "Current work", "Next step",
}

// material is a prompt as a model reads it.
type material struct {
	fence   string
	blocks  map[string]string
	entries []entry // of the history
}

type entry struct {
	turn       int
	head, text string
}

var entryHead = regexp.MustCompile(`^\[turn (\d+)\] (.+)$`)

func readMaterial(prompt string) *material {
	m := &material{blocks: map[string]string{}}
	first, rest, _ := strings.Cut(prompt, "\n")
	m.fence = first[strings.LastIndex(first, " ")+1 : len(first)-1]
	at := ""
	for l := range strings.Lines(rest) {
		l = strings.TrimSuffix(l, "\n")
		if name, ok := strings.CutSuffix(l, " "+m.fence+" ==="); ok && strings.HasPrefix(name, "=== ") {
			at = name[len("=== "):]
			continue
		}
		if at == "" || at == "end" {
			continue
		}
		m.blocks[at] += l + "\n"
		if at != "history" {
			continue
		}
		if h := entryHead.FindStringSubmatch(l); h != nil {
			m.entries = append(m.entries, entry{turn: number(h[1]), head: h[2]})
		} else if n := len(m.entries); n > 0 {
			m.entries[n-1].text += strings.TrimPrefix(l, " ") + "\n"
		}
	}
	return m
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err) // an expression has matched digits
	}
	return n
}

// summary writes the ten sections: those of the earlier summary, and a line for
// what each entry begins with.
func (m *material) summary() string { return write(m.sections()) }

func write(sections map[string][]string) string {
	var b strings.Builder
	b.WriteString("<analysis>\nIn order: something was wanted, and done.\n</analysis>\n<summary>\n")
	for _, t := range titles {
		b.WriteString("## " + t + "\n")
		if len(sections[t]) == 0 {
			b.WriteString("- none\n")
		}
		for _, l := range sections[t] {
			b.WriteString("- " + l + "\n")
		}
	}
	return b.String() + "</summary>\n"
}

func (m *material) sections() map[string][]string {
	out := map[string][]string{}
	at := ""
	for l := range strings.Lines(m.blocks["earlier summary"]) {
		l = strings.TrimSpace(l)
		if t, ok := strings.CutPrefix(l, "## "); ok {
			at = t
		} else if l, ok := strings.CutPrefix(l, "- "); ok {
			out[at] = append(out[at], l)
		}
	}
	add := func(title, text string, e entry) {
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if len(first) > 200 {
			first = strings.ToValidUTF8(first[:200], "")
		}
		if first != "" {
			out[title] = append(out[title], fmt.Sprintf("%s (turn %d)", first, e.turn))
		}
	}
	for _, e := range m.entries {
		switch {
		case e.head == "user":
			if len(out["Goal and intent"]) == 0 {
				add("Goal and intent", e.text, e)
			}
			add("How the task evolved", e.text, e)
			for l := range strings.Lines(e.text) {
				if lower := strings.ToLower(l); strings.Contains(lower, "never") || strings.Contains(lower, "must") {
					add("Constraints and rules", l, e)
				}
			}
			out["Next step"] = nil
			add("Next step", e.text, e)
		case e.head == "assistant":
			add("Current work", e.text, e)
		case strings.HasSuffix(e.head, ", failed"):
			add("Errors and fixes", e.text, e)
		case strings.HasPrefix(e.head, "result"):
			add("Concepts and discoveries", e.text, e)
		case strings.HasPrefix(e.head, "call"):
			add("Files and data", e.text, e)
		}
	}
	work := out["Current work"]
	out["Current work"] = work[max(0, len(work)-3):]
	return out
}
