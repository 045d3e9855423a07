package compaction_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
	"compactd/internal/testkit/strict"
)

// picture is a PNG of a size, in base64.
func picture(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func document(pages int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%%PDF-1.7\n1 0 obj\n<</Type/Pages/Kids[2 0 R]/Count %d>>\nendobj\n", pages))
}

// How an image or document is written in a dialect, in a message of a user.
var mediaForms = map[events.Format]struct{ message, image, document, text string }{
	events.OpenAI: {
		`{"role":"user","content":[%s]}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,%s"}}`, `{"type":"text","text":%q}`,
	},
	events.Anthropic: {
		`{"role":"user","content":[%s]}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"%s"}}`, `{"type":"text","text":%q}`,
	},
	events.Responses: {
		`{"type":"message","role":"user","content":[%s]}`, `{"type":"input_image","image_url":"data:image/png;base64,%s"}`,
		`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,%s"}`, `{"type":"input_text","text":%q}`,
	},
	events.Gemini: {
		`{"role":"user","parts":[%s]}`, `{"inlineData":{"mimeType":"image/png","data":"%s"}}`,
		`{"inlineData":{"mimeType":"application/pdf","data":"%s"}}`, `{"text":%q}`,
	},
	events.Bedrock: {
		`{"role":"user","content":[%s]}`, `{"image":{"format":"png","source":{"bytes":"%s"}}}`,
		`{"document":{"format":"pdf","name":"a","source":{"bytes":"%s"}}}`, `{"text":%q}`,
	},
	events.AISDK: {
		`{"role":"user","content":[%s]}`, `{"type":"image","image":"%s"}`,
		`{"type":"file","mediaType":"application/pdf","data":"%s"}`, `{"type":"text","text":%q}`,
	},
}

// F5: a history never has more images or documents than its provider takes in one request:
// the oldest become placeholders, wherever they are, and those of the newest exchange stay.
func TestMediaLimits(t *testing.T) {
	small, large := picture(t, 20, 10), picture(t, 2400, 10)
	for _, c := range []struct {
		name            string
		format          events.Format
		provider, model string
		media           string // small, large, or a document
		each, most      int
	}{
		{"claude", events.Anthropic, "anthropic", "claude-haiku-4-5", "small", 1, 100},
		{"claude large", events.Anthropic, "anthropic", "claude-haiku-4-5", "large", 1, 20},
		{"claude several", events.Anthropic, "anthropic", "claude-haiku-4-5", "small", 7, 100},
		{"claude by openrouter", events.OpenAI, "openrouter", "anthropic/claude-haiku-4.5", "small", 1, 100},
		{"converse", events.Bedrock, "bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", "small", 1, 100},
		{"converse documents", events.Bedrock, "bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", "document", 1, 5},
		{"responses", events.Responses, "openai", "gpt-6", "small", 20, 500},
		{"ai-sdk", events.AISDK, "anthropic", "claude-haiku-4-5", "small", 1, 100},
		{"gemini dialect", events.Gemini, "openrouter", "claude-haiku-4-5", "small", 1, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(t, defaultConfig(t))
			form := mediaForms[c.format]
			block := map[string]string{
				"small": fmt.Sprintf(form.image, small), "large": fmt.Sprintf(form.image, large),
				"document": fmt.Sprintf(form.document, document(1)),
			}[c.media]
			reasons, cleared := map[events.Reason]int{}, 0
			for n := 1; cleared < 3 && n < 4*c.most; n++ {
				blocks := []string{fmt.Sprintf(form.text, fmt.Sprintf("Look at number %d.", n))}
				for range c.each {
					blocks = append(blocks, block)
				}
				turn := append([]codec.Raw{codec.Raw(fmt.Sprintf(form.message, strings.Join(blocks, ",")))},
					messages(c.format, msg{role: dialect.RoleAssistant, text: fmt.Sprintf("I see %d.", n)})...)
				for _, o := range a.publish(object{
					"turn": n, "format": c.format, "generation": a.ledger.Generation(), "messages": turn,
					"model": object{"provider": c.provider, "name": c.model, "context_window": 200_000},
				}) {
					if body, ok := o.Body.(*events.Compacted); ok && body.Compacted {
						reasons[body.Reason]++
						cleared++
					}
				}
				view := a.ledger.View()
				raw, err := a.render(view)
				if err != nil {
					t.Fatal(err)
				}
				if v := validate.Messages(c.format, raw); len(v) > 0 {
					t.Fatalf("turn %d: %v", n, v)
				}
				call := strict.Call{Provider: c.provider, Model: c.model}
				for _, m := range raw {
					call.Messages = append(call.Messages, json.RawMessage(m))
				}
				if refusals := strict.Refuse(call); (c.format == events.Anthropic || c.format == events.Bedrock) && len(refusals) > 0 {
					t.Fatalf("turn %d: %v", n, refusals)
				}
				all := whole(raw)
				if got := strings.Count(all, block); got > c.most {
					t.Fatalf("turn %d: %d media, at most %d", n, got, c.most)
				} else if got < min(n*c.each, c.most/2) {
					t.Fatalf("turn %d: only %d media are left", n, got)
				}
				last := whole(raw[len(raw)-2:])
				if strings.Count(last, block) != c.each {
					t.Fatalf("turn %d: the newest lost its media: %.300s", n, last)
				}
				if marker := strings.LastIndex(all, " cleared]"); marker > strings.Index(all, block) {
					t.Fatalf("turn %d: a newer one was cleared before an older", n)
				}
				for k := 1; k <= n; k++ {
					if !strings.Contains(all, fmt.Sprintf("Look at number %d.", k)) {
						t.Fatalf("turn %d: the words of %d are gone", n, k)
					}
				}
			}
			if reasons[events.ReasonMedia] < 3 {
				t.Errorf("%v: too few to show anything", reasons)
			}
			rows, err := stored.Rows(a.ledger)
			if err != nil {
				t.Fatal(err)
			}
			again, err := stored.ReadLedger(a.ledger.Address, rows)
			if err != nil {
				t.Fatal(err)
			}
			if again.Media(a.config) != a.ledger.Media(a.config) {
				t.Errorf("a stored ledger has %+v, want %+v", again.Media(a.config), a.ledger.Media(a.config))
			}
		})
	}
}

func whole(raw []codec.Raw) string {
	var b strings.Builder
	for _, r := range raw {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

// Where tokens have to be saved and there are no results of tools to clear, old images and
// documents of users are cleared before any message is hidden, and no more of them than
// it takes.
func TestMediaSaveTokens(t *testing.T) {
	for format, form := range mediaForms {
		t.Run(string(format), func(t *testing.T) {
			a := newAgent(t, defaultConfig(t))
			block := fmt.Sprintf(form.document, document(10))
			for n := 1; a.ledger.Generation() < 2; n++ {
				turn := append([]codec.Raw{codec.Raw(fmt.Sprintf(form.message, fmt.Sprintf(form.text, fmt.Sprintf("Read number %d.", n))+","+block))},
					messages(format, msg{role: dialect.RoleAssistant, text: fmt.Sprintf("I have read %d.", n)})...)
				for _, o := range a.publish(object{
					"turn": n, "format": format, "generation": a.ledger.Generation(), "messages": turn,
					"model": object{"provider": "groq", "name": "llama", "context_window": 200_000}, // 20,000 a document
				}) {
					body, ok := o.Body.(*events.Compacted)
					if !ok || !body.Compacted {
						continue
					}
					for _, x := range body.Edits {
						if x.Op != events.OpClear {
							t.Fatalf("turn %d: %+v", n, x)
						}
					}
					if !body.Budget.WithinBudget || body.TokensAfter > body.TargetTokens || body.TokensAfter < body.TargetTokens-25_000 {
						t.Errorf("turn %d: %d tokens, target %d", n, body.TokensAfter, body.TargetTokens)
					}
				}
				view := a.ledger.View()
				raw, err := a.render(view)
				if err != nil {
					t.Fatal(err)
				}
				all := whole(raw)
				if v := validate.Messages(format, raw); len(v) > 0 || !strings.Contains(all, "Read number 1.") || !strings.Contains(whole(raw[len(raw)-2:]), block) {
					t.Fatalf("turn %d: %v\n%s", n, v, lines(raw))
				}
				if got := strings.Count(all, "[Document cleared]") + strings.Count(all, block); got != n {
					t.Fatalf("turn %d: %d documents and placeholders", n, got)
				}
			}
		})
	}
}
