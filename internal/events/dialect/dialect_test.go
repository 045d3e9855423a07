package dialect_test

import (
	"errors"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The names that all tests of dialects use.
type (
	Format  = events.Format
	Message = dialect.Message
	Part    = dialect.Part
	Raw     = codec.Raw
	Role    = dialect.Role
)

const (
	OpenAI    = events.OpenAI
	Anthropic = events.Anthropic
	NeuroLink = events.NeuroLink
	Responses = events.Responses
	Gemini    = events.Gemini
	Bedrock   = events.Bedrock
	AISDK     = events.AISDK

	RoleSystem    = dialect.RoleSystem
	RoleUser      = dialect.RoleUser
	RoleAssistant = dialect.RoleAssistant
	RoleTool      = dialect.RoleTool

	PartText     = dialect.PartText
	PartCall     = dialect.PartCall
	PartResult   = dialect.PartResult
	PartThinking = dialect.PartThinking
	PartImage    = dialect.PartImage
	PartOther    = dialect.PartOther
)

// elsewhere compares parts wherever they were read.
var elsewhere = cmpopts.IgnoreFields(Part{}, "Source")

type readCase struct {
	name, raw string
	want      Message // without Raw
}

func checkRead(t *testing.T, f Format, cases []readCase) {
	t.Helper()
	for _, test := range cases {
		got, err := f.Read(codec.Raw(test.raw))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if d := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Message{}, "Raw"), elsewhere); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
		if raw, err := f.Write(got); err != nil || string(raw) != test.raw {
			t.Errorf("%s: written back as %s, %v", test.name, raw, err)
		}
	}
}

// checkReadProblems holds readers to their errors, and events.Format to reporting each as one of a
// message.
func checkReadProblems(t *testing.T, f Format, cases map[string]error) {
	t.Helper()
	for raw, want := range cases {
		r := dialect.Reader{Walker: codec.Walk(codec.Raw(raw))}
		_, got := f.Dialect().Read(&r)
		if r.End() != nil {
			got = dialect.ErrNoMessage
		}
		_, err := f.Read(codec.Raw(raw))
		bad, ok := errors.AsType[*events.Invalid](err)
		if got != want || !ok || len(bad.Problems) != 1 || bad.Problems[0].Code != events.CodeBadMessage || bad.Problems[0].Field != "message" {
			t.Errorf("%s %s: got %v and %v, want %v", f, raw, got, err, want)
		}
	}
}

type writeCase struct {
	name, raw string
	edit      func(*Message)
	want      string
}

// checkWrite reads raw, or starts with a new message where it is empty, edits
// it, and compares what is written.
func checkWrite(t *testing.T, f Format, cases []writeCase) {
	t.Helper()
	for _, test := range cases {
		var m Message
		if test.raw != "" {
			var err error
			if m, err = f.Read(codec.Raw(test.raw)); err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
		}
		m.Edited = true
		test.edit(&m)
		got, err := f.Write(m)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if d := cmp.Diff(test.want, string(got)); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
	}
}

func checkWriteErrors(t *testing.T, f Format, cases map[string]Message) {
	t.Helper()
	for name, m := range cases {
		m.Edited = true
		if got, err := f.Write(m); err == nil {
			t.Errorf("%s %s: got %s, want an error", f, name, got)
		}
	}
}

// A clone can be edited without changing its original.
func TestClone(t *testing.T) {
	m, err := Anthropic.Read(codec.Raw(`{"role":"user","content":[{"type":"text","text":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	c.SetText(0, "b")
	if m.Edited || m.Parts[0].Text != "a" || !c.Edited || c.Parts[0].Text != "b" {
		t.Errorf("got %+v and %+v", m, c)
	}
}

func BenchmarkRead(b *testing.B) {
	text := strings.Repeat(`func main() {\n\tfmt.Println(\"hello\")\n}\n`, 30)
	raws := map[Format]string{
		Anthropic: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"` + text + `"}]}`,
		OpenAI:    `{"role":"tool","tool_call_id":"call_01","content":"` + text + `"}`,
		NeuroLink: `{"id":"m1","role":"tool_result","tool":"read_file","content":"` + text + `"}`,
	}
	for _, f := range []Format{Anthropic, OpenAI, NeuroLink} {
		b.Run(string(f), func(b *testing.B) {
			raw := codec.Raw(raws[f])
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Read(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
