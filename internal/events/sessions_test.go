package events

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/events/dialect"
	"compactd/internal/testkit/realsessions"

	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
)

// sessionLine is one line of a recorded session.
type sessionLine struct {
	Session string      `json:"session"`
	Kind    string      `json:"kind"`
	Role    string      `json:"role"`
	Content []codec.Raw `json:"content"`
	Meta    struct {
		Summary codec.Raw `json:"summary"`
	} `json:"meta"`
}

type sessionBlock struct {
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Input     codec.Raw `json:"input"`
	ToolUseID string    `json:"tool_use_id"`
	Content   codec.Raw `json:"content"`
}

// sessionFiles lists recordings of real agents, which are not part of the
// repository.
func sessionFiles(t *testing.T) []string {
	dir := realsessions.Dir(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("COMPACTD_SESSIONS: no sessions in %s", dir)
	}
	return files
}

// sessionLines returns the recorded messages of an agent, by session.
func sessionLines(t *testing.T, path string) map[string][]sessionLine {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]sessionLine{}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l sessionLine
		if err := codec.Unmarshal(codec.Clean(lines.Bytes()), &l); err != nil {
			t.Fatal(err)
		}
		if l.Kind == "message" && l.Meta.Summary == nil {
			out[l.Session] = append(out[l.Session], l)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// asAnthropic drops thinking, which has no signature here.
func asAnthropic(t *testing.T, lines []sessionLine) (out []codec.Raw) {
	for _, l := range lines {
		var blocks []codec.Raw
		for _, raw := range l.Content {
			var b sessionBlock
			if err := codec.Unmarshal(raw, &b); err != nil {
				t.Fatal(err)
			}
			if b.Type != "thinking" {
				blocks = append(blocks, raw)
			}
		}
		if len(blocks) > 0 {
			out = append(out, codec.WriteObject([]codec.Member{{Name: "role", Value: codec.Quote(l.Role)}, {Name: "content", Value: codec.WriteArray(blocks)}}))
		}
	}
	return out
}

func asOpenAI(t *testing.T, lines []sessionLine) (out []codec.Raw) {
	for _, l := range lines {
		var texts []string
		var calls []codec.Raw
		for _, raw := range l.Content {
			var b sessionBlock
			if err := codec.Unmarshal(raw, &b); err != nil {
				t.Fatal(err)
			}
			switch b.Type {
			case "text":
				texts = append(texts, b.Text)
			case "tool_use":
				calls = append(calls, openAICall(b))
			case "tool_result":
				out = append(out, codec.WriteObject([]codec.Member{{Name: "role", Value: codec.Raw(`"tool"`)}, {Name: "tool_call_id", Value: codec.Quote(b.ToolUseID)}, {Name: "content", Value: b.Content}}))
			}
		}
		ms := []codec.Member{{Name: "role", Value: codec.Quote(l.Role)}}
		if len(texts) > 0 {
			ms = append(ms, codec.Member{Name: "content", Value: codec.Quote(strings.Join(texts, "\n"))})
		}
		if len(calls) > 0 {
			ms = append(ms, codec.Member{Name: "tool_calls", Value: codec.WriteArray(calls)})
		}
		if len(ms) > 1 {
			out = append(out, codec.WriteObject(ms))
		}
	}
	return out
}

// Whole histories of real agents come back byte for byte, and rebuilt from
// their parts they say the same.
func TestRealSessions(t *testing.T) {
	for _, path := range sessionFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, convert := Anthropic, asAnthropic
			if strings.HasPrefix(filepath.Base(path), "tau") {
				f, convert = OpenAI, asOpenAI
			}
			calls, results, rules := 0, 0, map[string]int{}
			for _, lines := range sessionLines(t, path) {
				in := convert(t, lines)
				msgs, err := f.ReadAll(in)
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Complete(msgs); err != nil {
					t.Errorf("refused: %v", err)
				}
				out, err := writeAll(f, msgs)
				if err != nil {
					t.Fatal(err)
				}
				checkSame(t, in, out)
				for i := range msgs {
					msgs[i].Edited = true
					for _, p := range msgs[i].Parts {
						switch p.Kind {
						case dialect.PartCall:
							calls++
						case dialect.PartResult:
							results++
						}
					}
				}
				if out, err = writeAll(f, msgs); err != nil {
					t.Fatal(err)
				}
				checkSame(t, in, out)
				for _, v := range validate.Messages(f, out) {
					rules[v.Rule]++
				}
			}
			t.Logf("%d calls, %d results; as it stands the history breaks %v", calls, results, rules)
			if calls == 0 || rules["bad_shape"] > 0 {
				t.Error("no call was read, or a message has a bad shape")
			}
		})
	}
}

// checkSame compares without the cost of a diff: a session has megabytes.
func checkSame(t *testing.T, want, got []codec.Raw) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages became %d", len(want), len(got))
	}
	for i := range want {
		if !bytes.Equal(want[i], got[i]) {
			t.Errorf("message %d changed", i)
		}
	}
}

func openAICall(b sessionBlock) codec.Raw {
	raw, _ := codec.Marshal(map[string]any{"id": b.ID, "type": "function", "function": map[string]any{"name": b.Name, "arguments": string(b.Input)}})
	return raw
}
