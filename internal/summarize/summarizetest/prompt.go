package summarizetest

import (
	"io"
	"net/http"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/lazyregexp"
)

// Dialect is a wire format.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"    // chat completions
	Anthropic Dialect = "anthropic" // messages, of Anthropic, Vertex AI and Bedrock
	Google    Dialect = "google"    // generateContent, of AI Studio and Vertex AI
)

// Prompt is one call as it arrived.
type Prompt struct {
	Dialect      Dialect
	Path         string
	Model        string
	System, User string
	MaxOutput    int64
	Tools        bool   // the request offered tools
	Key          string // as it was sent, in whichever header
}

// chat is the union of the three request formats.
type chat struct {
	Model     string          `json:"model"`
	System    []text          `json:"system"`
	Messages  []message       `json:"messages"`
	MaxTokens int64           `json:"max_tokens"`
	MaxNew    int64           `json:"max_completion_tokens"`
	Tools     []any           `json:"tools"`
	Functions []any           `json:"functions"`
	Instruct  content         `json:"systemInstruction"`
	Contents  []content       `json:"contents"`
	Config    generateContent `json:"generationConfig"`
}

type (
	text struct {
		Text string `json:"text"`
	}
	content struct {
		Parts []text `json:"parts"`
	}
	message struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a string, or blocks of text
	}
	generateContent struct {
		MaxOutput int64 `json:"maxOutputTokens"`
	}
)

// inPath finds the model in the paths that hold it: Google's, and those of Claude
// on Vertex AI and on Bedrock.
var inPath = lazyregexp.New(`/models?/(.+?)(:generateContent|:rawPredict|/invoke)$`)

func readPrompt(r *http.Request) (Prompt, bool) {
	var c chat
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || codec.Unmarshal(body, &c) != nil {
		return Prompt{}, false
	}
	p := Prompt{
		Path: r.URL.Path, Model: c.Model, System: join(c.System) + join(c.Instruct.Parts),
		MaxOutput: c.MaxTokens + c.MaxNew + c.Config.MaxOutput, Tools: len(c.Tools)+len(c.Functions) > 0, Key: sentKey(r.Header),
	}
	if m := inPath().FindStringSubmatch(p.Path); m != nil {
		p.Model = m[1]
	}
	for _, m := range c.Messages {
		if m.Role == "system" {
			p.System += plain(m.Content)
		} else {
			p.User += plain(m.Content)
		}
	}
	for _, m := range c.Contents {
		p.User += join(m.Parts)
	}
	return p, p.dialect()
}

func (p *Prompt) dialect() bool {
	switch {
	case strings.HasSuffix(p.Path, "/chat/completions"):
		p.Dialect = OpenAI
	case strings.HasSuffix(p.Path, "/v1/messages"), strings.HasSuffix(p.Path, ":rawPredict"), strings.HasSuffix(p.Path, "/invoke"):
		p.Dialect = Anthropic
	case strings.HasSuffix(p.Path, ":generateContent"):
		p.Dialect = Google
	}
	return p.Dialect != ""
}

func join(texts []text) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(t.Text)
	}
	return b.String()
}

// plain is the text of a message in either form.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(plain(e))
		}
		return b.String()
	case map[string]any:
		return plain(v["text"])
	default:
		return ""
	}
}

func sentKey(h http.Header) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
}

// TenSections answers any prompt with the same line in each of the ten sections, behind the model's thoughts.
func TenSections(line string) func(Prompt) string {
	var b strings.Builder
	b.WriteString("<analysis>in order</analysis>\n<summary>\n")
	for _, title := range []string{
		"Goal and intent", "Constraints and rules", "Decisions", "Concepts and discoveries", "Files and data", "Errors and fixes",
		"Open tasks and questions", "How the task evolved", "Current work", "Next step",
	} {
		b.WriteString("## " + title + "\n- " + line + "\n")
	}
	b.WriteString("</summary>\n")
	return func(Prompt) string { return b.String() }
}
