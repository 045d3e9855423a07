package summarizetest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/summarizetest"
)

var dialects = []summarizetest.Dialect{summarizetest.OpenAI, summarizetest.Anthropic, summarizetest.Google}

// tenSections is a model that writes what it is given.
func tenSections(p summarizetest.Prompt) string {
	var b strings.Builder
	b.WriteString("<analysis>in order</analysis>\n<summary>\n")
	for l := range strings.Lines(p.System) {
		if strings.HasPrefix(l, "## ") {
			fmt.Fprintf(&b, "%s- the %s model has read it (turn 1)\n", l, p.Dialect)
		}
	}
	return b.String() + "</summary>\n"
}

func open(t testing.TB, c provider.Config) model.Model {
	t.Helper()
	m, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The four summarizers keep one contract.
func TestSummarizers(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		summarizetest.RunSummarizer(t, func(testing.TB) summarize.Summarizer { return extract.New() })
	})
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			summarizetest.RunSummarizer(t, func(t testing.TB) summarize.Summarizer {
				s := summarizetest.StartPipe(t, tenSections)
				return llm.New(open(t, s.Config(d)))
			})
		})
	}
}

// P8: whatever a provider does, a job ends in time with a summary: the provider's
// if it gave one, else that of the next, else the embedded summarizer's.
func TestOutages(t *testing.T) {
	sanitize.Redact("warm up")
	const timeout = 12 * time.Minute // of one model
	for _, d := range dialects {
		for _, mode := range summarizetest.Modes() {
			t.Run(string(d)+" "+string(mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					bad, good := summarizetest.StartPipe(t, tenSections), summarizetest.StartPipe(t, tenSections)
					bad.Script(mode)
					first, next := open(t, bad.Config(d)), open(t, good.Config(summarizetest.Anthropic))
					writer := extract.Model
					if mode == summarizetest.Good || mode == summarizetest.Slow {
						writer = first.Name()
					}
					check(t, writer, timeout, first)
					if writer == extract.Model {
						writer = next.Name()
					}
					check(t, writer, timeout, first, next)
				})
			})
		}
	}
}

// check summarizes with models, and wants a whole summary by writer in time.
func check(t *testing.T, writer string, within time.Duration, models ...model.Model) {
	t.Helper()
	var attempts []string
	in := summarize.Input{Messages: summarizetest.History(1, 10), MaxUnits: 10_000}
	in.OnAttempt = func(a summarize.Attempt) {
		attempts = append(attempts, fmt.Sprint(a.Model, ": ", a.Err))
		if a.Err != nil && strings.Contains(a.Err.Error(), summarizetest.Key) {
			t.Errorf("the error has the key: %v", a.Err)
		}
	}
	began := time.Now()
	s, err := llm.New(models...).Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > within {
		t.Errorf("took %s", took)
	}
	t.Logf("written by %s after %s: %q", s.Model, time.Since(began).Round(time.Millisecond), attempts)
	if s.Model != writer || len(s.Record) == 0 || s.Text == "" {
		t.Errorf("written by %q, want %q; attempts %q", s.Model, writer, attempts)
	}
}
