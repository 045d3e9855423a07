package summaries

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// Fake is a model in this process. It records its requests.
type Fake struct {
	ID       string // its name, behind fake/
	Bounds   model.Limits
	Answer   func(model.Request) (model.Reply, error)
	Requests []model.Request
}

// Name is fake/ and its id.
func (f *Fake) Name() string { return "fake/" + f.ID }

// Limits are its bounds.
func (f *Fake) Limits() model.Limits { return f.Bounds }

// Complete records a request and answers it.
func (f *Fake) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	f.Requests = append(f.Requests, r)
	return f.Answer(r)
}

// Wide are the limits of a large model.
var Wide = model.Limits{Window: 200_000, MaxOutput: 8_000}

// Echo is a model that does what it is requested, in a plain way: each section is
// made of lines of the prompt.
func Echo() *Fake {
	return &Fake{ID: "echo", Bounds: Wide, Answer: func(r model.Request) (model.Reply, error) {
		return Finished(ReadMaterial(r.User).summary()), nil
	}}
}

// Finished is an answer that the model ended itself.
func Finished(text string) model.Reply {
	return model.Reply{Text: text, Model: "echo-1", Usage: events.SummaryUsage{Input: 1_000, Output: 100}, Finish: model.FinishStop}
}

// Always answers the same.
func Always(name string, r model.Reply, err error) *Fake {
	return &Fake{ID: name, Bounds: Wide, Answer: func(model.Request) (model.Reply, error) { return r, err }}
}

// Titles are the headings that the instructions name.
var Titles = []string{
	"Goal and intent", "Constraints and rules", "Decisions", "Concepts and discoveries", "Files and data", "Errors and fixes",
	"Open tasks and questions", "How the task evolved", "Current work", "Next step",
}

// Material is a prompt as a model reads it.
type Material struct {
	Fence   string
	Blocks  map[string]string
	Entries []Entry // of the history
}

// Entry is a message of the history, as a prompt shows it.
type Entry struct {
	Turn       int
	Head, Text string
}

var entryHead = regexp.MustCompile(`^\[turn (\d+)\] (.+)$`)

// ReadMaterial reads a prompt.
func ReadMaterial(prompt string) *Material {
	m := &Material{Blocks: map[string]string{}}
	first, rest, _ := strings.Cut(prompt, "\n")
	m.Fence = first[strings.LastIndex(first, " ")+1 : len(first)-1]
	at := ""
	for l := range strings.Lines(rest) {
		l = strings.TrimSuffix(l, "\n")
		if name, ok := strings.CutSuffix(l, " "+m.Fence+" ==="); ok && strings.HasPrefix(name, "=== ") {
			at = name[len("=== "):]
			continue
		}
		if at == "" || at == "end" {
			continue
		}
		m.Blocks[at] += l + "\n"
		if at != "history" {
			continue
		}
		if h := entryHead.FindStringSubmatch(l); h != nil {
			m.Entries = append(m.Entries, Entry{Turn: Number(h[1]), Head: h[2]})
		} else if n := len(m.Entries); n > 0 {
			m.Entries[n-1].Text += strings.TrimPrefix(l, " ") + "\n"
		}
	}
	return m
}

// Number reads digits.
func Number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err) // an expression has matched digits
	}
	return n
}

// summary writes the ten sections: those of the earlier summary, and a line for
// what each entry begins with.
func (m *Material) summary() string { return Write(m.Sections()) }

// Write is an answer of ten sections.
func Write(sections map[string][]string) string {
	var b strings.Builder
	b.WriteString("<analysis>\nIn order: something was wanted, and done.\n</analysis>\n<summary>\n")
	for _, t := range Titles {
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

// Sections are the lines of each.
func (m *Material) Sections() map[string][]string {
	out := map[string][]string{}
	at := ""
	for l := range strings.Lines(m.Blocks["earlier summary"]) {
		l = strings.TrimSpace(l)
		if t, ok := strings.CutPrefix(l, "## "); ok {
			at = t
		} else if l, ok := strings.CutPrefix(l, "- "); ok {
			out[at] = append(out[at], l)
		}
	}
	add := func(title, text string, e Entry) {
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if len(first) > 200 {
			first = strings.ToValidUTF8(first[:200], "")
		}
		if first != "" {
			out[title] = append(out[title], fmt.Sprintf("%s (turn %d)", first, e.Turn))
		}
	}
	for _, e := range m.Entries {
		switch {
		case e.Head == "user":
			if len(out["Goal and intent"]) == 0 {
				add("Goal and intent", e.Text, e)
			}
			add("How the task evolved", e.Text, e)
			for l := range strings.Lines(e.Text) {
				if lower := strings.ToLower(l); strings.Contains(lower, "never") || strings.Contains(lower, "must") {
					add("Constraints and rules", l, e)
				}
			}
			out["Next step"] = nil
			add("Next step", e.Text, e)
		case e.Head == "assistant":
			add("Current work", e.Text, e)
		case strings.HasSuffix(e.Head, ", failed"):
			add("Errors and fixes", e.Text, e)
		case strings.HasPrefix(e.Head, "result"):
			add("Concepts and discoveries", e.Text, e)
		case strings.HasPrefix(e.Head, "call"):
			add("Files and data", e.Text, e)
		}
	}
	work := out["Current work"]
	out["Current work"] = work[max(0, len(work)-3):]
	return out
}
