package summarize_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/secrets"
	"compactd/internal/testkit/summaries"
)

// places are where a secret may stand in a history.
var places = []string{"user", "assistant", "result", "failure", "command", "path", "todo", "file", "previous text", "previous record", "focus"}

// secretive is a session with a text in one place.
func secretive(t testing.TB, place, text string) summarize.Input {
	in := summarize.Input{Messages: summaries.BusyRange(1, 15), MaxUnits: 20_000}
	add := func(role dialect.Role, p dialect.Part) {
		in.Messages = append(in.Messages, summarize.Message{Turn: 99, Message: dialect.Message{Role: role, Parts: []dialect.Part{p}}})
	}
	call := func(tool string, args any) {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		add(dialect.RoleAssistant, dialect.Part{Kind: dialect.PartCall, CallID: "s", Tool: tool, Args: raw})
	}
	switch place {
	case "user":
		add(dialect.RoleUser, dialect.Part{Kind: dialect.PartText, Text: "You must use this: " + text + " always."})
	case "assistant":
		add(dialect.RoleAssistant, dialect.Part{Kind: dialect.PartText, Text: "I decided to use " + text + " because it works."})
	case "result", "failure":
		call("Bash", map[string]string{"command": "env"})
		add(dialect.RoleUser, dialect.Part{Kind: dialect.PartResult, CallID: "s", Failed: place == "failure", Text: "Error: " + text})
	case "command":
		call("Bash", map[string]string{"command": "curl -H '" + text + "' x"})
	case "path":
		call("Write", map[string]string{"file_path": "/tmp/" + text})
	case "todo":
		call("TodoWrite", map[string]any{"todos": []any{map[string]string{"content": "use " + text, "status": "pending"}}})
	case "file":
		call("Write", map[string]string{"file_path": "/src/.env", "content": text})
	case "previous text":
		in.Previous = &events.Summary{Text: "## Decisions\n- " + strings.ReplaceAll(text, "\n", " ") + " (turn 1)\n"}
	case "previous record":
		in.Previous = &events.Summary{Text: "## Decisions\n- x", Record: []events.RecordLine{{Kind: events.RecordDecision, Text: text, Turns: [2]int64{1, 1}}}}
	case "focus":
		in.Focus = text
	}
	return in
}

// C9: a secret of any kind, in any place, whole or where a line is cut, is
// neither sent to a model nor stored, any caller who writes the summary.
func TestSecretsStayOut(t *testing.T) {
	for k, c := range secrets.All() {
		for i, place := range places {
			before := []int{0, 150, 390}[(k+i)%3]
			in := secretive(t, place, strings.Repeat("x ", before/2)+c.Text)
			m := summaries.Echo()
			for _, s := range []summarize.Summarizer{extract.New(), llm.New(m)} {
				got, err := s.Summarize(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if text := got.Message().Parts[0].Text; secrets.Leak(text, c.Value) {
					t.Errorf("%s in %s behind %d characters: in the summary of %s", c.Kind, place, before, got.Model)
				}
			}
			if len(m.Requests) != 1 || secrets.Leak(m.Requests[0].User+m.Requests[0].System, c.Value) {
				t.Errorf("%s in %s behind %d characters: in the prompt", c.Kind, place, before)
			}
		}
	}
}

// Arguments stay JSON with the members they had, whatever is taken out of them.
func TestSecretsInArguments(t *testing.T) {
	pem := "-----BEGIN PRIVATE " + "KEY-----"
	for _, c := range []struct{ args, path string }{
		{`{"file_path":"/src/a.go","content":"` + pem + `","other":"text that is long enough to be taken for lines of a key, which ends in KEY-----"}`, "/src/a.go"},
		{`{"content":"` + pem + `","file_path":"/src/b.go","tail":"-----END PRIVATE ` + `KEY-----"}`, "/src/b.go"},
		{fmt.Sprintf(`{"file_path":"/src/c.go","content":%q}`, strings.Repeat("long ", 300_000)), "/src/c.go"},
	} {
		in := summarize.Input{MaxUnits: 20_000, Messages: []summarize.Message{{Turn: 1, Message: dialect.Message{
			Role: dialect.RoleAssistant, Parts: []dialect.Part{{Kind: dialect.PartCall, CallID: "a", Tool: "Write", Args: codec.Raw(c.args)}},
		}}}}
		if !summaries.HasLine(summarizetest.Record(in), events.RecordPathChanged, c.path) {
			t.Errorf("%.80s: the path is lost", c.args)
		}
	}
}

// A secret that one message names stays out of every other one, and of what a call was given; so
// does the answer to a question for it. A word that was a password is a word elsewhere.
func TestNamedSecretsStayOut(t *testing.T) {
	made, token := secrets.Random(61, secrets.Alnum, 13)+"7q", secrets.Random(62, secrets.Hex, 24)
	in := summarize.Input{
		Focus: "why " + made + " failed", MaxUnits: 20_000,
		Previous: &events.Summary{Text: "## Decisions\n- try " + made + " (turn 1)\n", Record: []events.RecordLine{{Kind: events.RecordDecision, Text: "try " + made, Turns: [2]int64{1, 1}}}},
		Messages: []summarize.Message{
			summaries.MessageOf(2, dialect.RoleUser, "I typed "+made+" and it failed."),
			summaries.MessageOf(2, dialect.RoleAssistant, "What is the password?"),
			summaries.MessageOf(3, dialect.RoleUser, "password="+made+" and password=development"),
			summaries.MessageOf(3, dialect.RoleAssistant, "The development server takes it. Please send me the API key, too."),
			summaries.MessageOf(4, dialect.RoleUser, "here you go: "+token),
			{Turn: 4, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
				{Kind: dialect.PartCall, CallID: "a", Tool: "Bash", Args: codec.Raw(`{"command":"./try ` + token + `","path":"a.go"}`)},
			}}},
		},
	}
	got, err := summarize.SanitizeInput(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal([]any{got.Messages, got.Previous, got.Focus})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(raw); secrets.Leak(text, made) || secrets.Leak(text, token) || !strings.Contains(text, "The development server takes it.") || !strings.Contains(text, "a.go") {
		t.Errorf("it became %s", text)
	}
	if in.Previous.Text != "## Decisions\n- try "+made+" (turn 1)\n" {
		t.Error("the input was changed")
	}
}

// An answer to another question is no secret, nor is a long one.
func TestAnswersStay(t *testing.T) {
	token := secrets.Random(63, secrets.Alnum, 16) + "8"
	for _, c := range [][2]string{
		{"Which build failed?", token},
		{"I rotated the token. Which build failed?", token},
		{"The token is rotated.", "take build " + token},
		{"What is the token limit?", "128k"},
		{"You must never change the API.", token},
		{"What is the password?", "It is in the vault."},
		{"Is the password wrong?", "no, see commit 4f3c2a9d81b07e65aa12"},
		{"What is the password?", strings.Repeat("I will look it up, see page "+token+". ", 9)},
	} {
		in := summarize.Input{Messages: []summarize.Message{summaries.MessageOf(1, dialect.RoleAssistant, c[0]), summaries.MessageOf(2, dialect.RoleUser, c[1])}}
		got, err := summarize.SanitizeInput(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if text := got.Messages[1].Parts[0].Text; text != c[1] {
			t.Errorf("%q became %q", c, text)
		}
	}
}
