package transcript

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
)

// Whatever a file holds, reading it ends, and what comes out are turns that a
// worker takes: numbered from 1, each with messages of its dialect.
func fuzzFormat(f *testing.F, script string, p parser) {
	data, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		f.Fatal(err)
	}
	for test := range strings.SplitSeq(string(data), "\n\n") {
		_, input, _ := strings.Cut(test, "\nread ")
		_, input, _ = strings.Cut(input, "\n")
		input, _, _ = strings.Cut(input, "\n----")
		f.Add([]byte(input))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		names := map[string]int{}
		seen := map[string]bool{}
		p(input{
			stem: "s", named: func(s string) string { return unique(names, s) }, bad: func(error) {}, wanted: func(string) bool { return true },
			take: func(s Session) {
				if !events.ValidID(s.Name) || seen[s.Name] {
					t.Fatalf("name %q", s.Name)
				}
				seen[s.Name] = true
				checkTurns(t, s)
			},
		}, bytes.NewReader(data))
	})
}

func checkTurns(t *testing.T, s Session) {
	t.Helper()
	for i, turn := range s.Turns {
		decoded, err := events.DecodeTurn(turn.Payload)
		if err != nil {
			t.Fatalf("turn %d: %v\n%s", i+1, err, turn.Payload)
		}
		if turn.Number != int64(i+1) || decoded.Number != turn.Number || turn.Input < 0 {
			t.Fatalf("turn %d has number %d, input %d", i+1, turn.Number, turn.Input)
		}
		if _, err := s.Format.ReadAll(decoded.Messages); err != nil {
			t.Fatalf("turn %d: %v\n%s", i+1, err, turn.Payload)
		}
	}
}

func FuzzClaudeCode(f *testing.F) { fuzzFormat(f, "claudecode.txt", parseClaudeCode) }

func FuzzOpenAI(f *testing.F) { fuzzFormat(f, "openai.txt", parseOpenAI) }

func FuzzOpenAILines(f *testing.F) { fuzzFormat(f, "openai.txt", parseOpenAILines) }

func FuzzSWEAgent(f *testing.F) { fuzzFormat(f, "sweagent.txt", parseSWEAgent) }

func FuzzMiniSWEAgent(f *testing.F) { fuzzFormat(f, "miniswe.txt", parseMiniSWEAgent) }

func FuzzCodex(f *testing.F) { fuzzFormat(f, "codex.txt", parseCodex) }

func FuzzPi(f *testing.F) { fuzzFormat(f, "pi.txt", parsePi) }

func FuzzCopilot(f *testing.F) { fuzzFormat(f, "copilot.txt", parseCopilot) }

func FuzzGemini(f *testing.F) { fuzzFormat(f, "gemini.txt", parseGemini) }

func FuzzOpencode(f *testing.F) { fuzzFormat(f, "opencode.txt", parseOpencode) }

func FuzzCompactd(f *testing.F) { fuzzFormat(f, "compactd.txt", parseCompactd) }

// Looking for the format of a file ends too.
func FuzzDetect(f *testing.F) {
	f.Add([]byte(`{"type":"user","uuid":""}`))
	f.Add([]byte("[\n{\"role\":1}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if from := detectIn(bytes.NewReader(data)); from != "" && from != database && !slices.Contains(Formats(), string(from)) {
			t.Fatalf("detected %q", from)
		}
	})
}
