package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

func checkReadProblems(t *testing.T, f Format, cases map[string]error) {
	t.Helper()
	for raw, problem := range cases {
		_, err := f.Read(codec.Raw(raw))
		want := problem.Error()
		if codec.Check(codec.Raw(raw)) == nil {
			want = f.explain(codec.Raw(raw), problem)
		}
		bad, ok := errors.AsType[*Invalid](err)
		if !ok || len(bad.Problems) != 1 || bad.Problems[0] != (Problem{CodeBadMessage, "message", want}) {
			t.Errorf("%s %s: got %v, want %v", f, raw, err, want)
		}
	}
}

// badEverywhere is no message of any dialect.
var badEverywhere = map[string]error{
	``:                               dialect.ErrNoMessage,
	`null`:                           dialect.ErrNoMessage,
	`[]`:                             dialect.ErrNoMessage,
	`"text"`:                         dialect.ErrNoMessage,
	`{"role":"user"`:                 dialect.ErrNoMessage,
	`{"role":"user","content":"a"}}`: dialect.ErrNoMessage,
	`{"content":"a"}`:                dialect.ErrNoRole,
	`{"role":1,"content":"a"}`:       dialect.ErrNoRole,
	`{"role":"king","content":"a"}`:  dialect.ErrNoRole,
	`{"role":"user"}`:                dialect.ErrNoContent,
	`{"role":"user","content":null}`: dialect.ErrNoContent,
	`{"role":"user","content":1}`:    dialect.ErrNoContent,
}

func TestReadProblems(t *testing.T) {
	for _, f := range []Format{OpenAI, Anthropic, NeuroLink} {
		checkReadProblems(t, f, badEverywhere)
	}
}

func TestUnknownFormat(t *testing.T) {
	for _, f := range []Format{"", "esperanto"} {
		if _, err := f.Read(codec.Raw(`{}`)); CodeOf(err) != CodeUnknownFormat {
			t.Errorf("Read: %v", err)
		}
		if _, err := f.ReadAll(nil); CodeOf(err) != CodeUnknownFormat {
			t.Errorf("ReadAll: %v", err)
		}
		if _, err := f.Write(dialect.Message{Role: dialect.RoleUser}); CodeOf(err) != CodeUnknownFormat {
			t.Errorf("Write: %v", err)
		}
	}
}

func TestReadAllNamesBadMessages(t *testing.T) {
	raws := []codec.Raw{codec.Raw(`{"role":"user","content":"a"}`), codec.Raw(`{"role":"king","content":"secret"}`), codec.Raw(`{"role":"user","content":"a"}`), codec.Raw(`{"role":"user"}`)}
	_, err := Anthropic.ReadAll(raws)
	want := &Invalid{Problems: []Problem{
		{CodeBadMessage, "messages[1]", "has a role that is none of anthropic (user, assistant)"},
		{CodeBadMessage, "messages[3]", dialect.ErrNoContent.Error()},
	}}
	if d := cmp.Diff(want, err); d != "" {
		t.Error(d)
	}
	_, err = OpenAI.ReadAll(make([]codec.Raw, 100))
	if got := len(codes(err)); got != maxBadMessages {
		t.Errorf("got %d problems, want %d", got, maxBadMessages)
	}
}

func TestReadAllWrite(t *testing.T) {
	raws := []codec.Raw{codec.Raw(`{"role":"user","content":"a"}`), codec.Raw(`{ "role" : "assistant", "content" : "b" }`)}
	for _, f := range []Format{OpenAI, Anthropic, NeuroLink} {
		msgs, err := f.ReadAll(raws)
		if err != nil {
			t.Fatal(err)
		}
		got, err := writeAll(f, msgs)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(raws, got); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
	_, err := OpenAI.Write(dialect.Message{Role: dialect.RoleTool})
	if err == nil || !strings.HasPrefix(err.Error(), "write openai message: ") {
		t.Errorf("got %v", err)
	}
}

// writeAll writes messages in order.
func writeAll(f Format, msgs []dialect.Message) ([]codec.Raw, error) {
	out := make([]codec.Raw, len(msgs))
	for i, m := range msgs {
		raw, err := f.Write(m)
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}

// A session that names no format has that of its provider, in any spelling, and of the maker
// of its model.
func TestDefaultFormat(t *testing.T) {
	for _, test := range []struct {
		provider, model string
		want            Format
	}{
		{"anthropic", "", Anthropic},
		{"Anthropic", "claude-opus-4-5", Anthropic},
		{"anthropic.messages", "", Anthropic},
		{"Bedrock", "", Anthropic},
		{"amazon-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", Anthropic},
		{"AWS Bedrock", "amazon.nova-pro-v1:0", Anthropic},
		{"Vertex AI", "claude-opus-4-5@20251101", Anthropic},
		{"vertex_ai", "publishers/anthropic/models/claude-haiku-4-5", Anthropic},
		{"vertex_ai", "gemini-3-pro-preview", OpenAI},
		{"google-vertex", "", OpenAI},
		{"google-vertex-anthropic", "claude-sonnet-4-5", Anthropic},
		{"azure", "claude-opus-4-5", Anthropic},
		{"Azure OpenAI", "gpt-5", OpenAI},
		{"azure", "my-deployment", OpenAI},
		{"openrouter", "anthropic/claude-opus-4.5", OpenAI},
		{"litellm", "claude-opus-4-5", OpenAI},
		{"openai", "gpt-5", OpenAI},
		{"", "", OpenAI},
		{"x", "", OpenAI},
		{"", "claude-opus-4-5", OpenAI},
	} {
		if got := DefaultFormat(&Model{Provider: test.provider, Name: test.model}); got != test.want {
			t.Errorf("%s, %s: %s, want %s", test.provider, test.model, got, test.want)
		}
	}
	if got := DefaultFormat(nil); got != OpenAI {
		t.Errorf("without a model: %s", got)
	}
}

func BenchmarkDecodeTurn(b *testing.B) {
	text := strings.Repeat(`func main() {\n\tfmt.Println(\"hello\")\n}\n`, 30)
	data := fmt.Appendf(nil, `{"v":1,"id":"0198","turn":7,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"%s"}]}]}`, text)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeTurn(data); err != nil {
			b.Fatal(err)
		}
	}
}
