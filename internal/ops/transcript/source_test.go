package transcript

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/linear"
	"compactd/internal/testkit/realsessions"
)

func collect(t *testing.T, from From, paths ...string) (out []Session) {
	t.Helper()
	s, err := Open(from, paths...)
	if err != nil {
		t.Fatal(err)
	}
	for session := range s.Sessions(func(err error) { t.Errorf("reported: %v", err) }) {
		out = append(out, session)
	}
	return out
}

// Real sessions are known by their first line.
func TestRealSessions(t *testing.T) {
	dir := realsessions.Dir(t)
	if diff := cmp.Diff(payloads(collect(t, Compactd, dir)), payloads(collect(t, Auto, dir))); diff != "" {
		t.Errorf("by its first line (-Compactd +Auto):\n%.2000s", diff)
	}
}

func payloads(sessions []Session) (out []string) {
	for _, s := range sessions {
		for _, t := range s.Turns {
			out = append(out, fmt.Sprintf("%s %v %s", s.Name, t.At, t.Payload))
		}
	}
	return out
}

// Real sessions, written as Claude Code and as chat completions would have kept
// them, come back as the same messages.
func TestRealSessionsInOtherFormats(t *testing.T) {
	sessions := collect(t, Compactd, realsessions.Dir(t))
	written := 0
	for _, s := range sessions {
		path, from := filepath.Join(t.TempDir(), s.Name), OpenAI
		text := asChat(s)
		if s.Format == events.Anthropic {
			path, from, text = path+".jsonl", ClaudeCode, asClaudeCode(t, s)
		} else {
			path += ".json"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := collect(t, Auto, path)
		if len(got) != 1 || got[0].Name != s.Name || got[0].Format != s.Format {
			t.Fatalf("%s as %s: %d sessions", s.Name, from, len(got))
		}
		if diff := cmp.Diff(parts(t, s), parts(t, got[0])); diff != "" {
			t.Fatalf("%s as %s (-recorded +read):\n%.2000s", s.Name, from, diff)
		}
		written++
	}
	t.Logf("%d sessions", written)
}

// parts states what a conversation holds, wherever its messages begin and end.
func parts(t *testing.T, s Session) (out []string) {
	t.Helper()
	for _, turn := range s.Turns {
		messages, err := s.Format.ReadAll(turn.Messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			for _, p := range m.Parts {
				if p.Kind != dialect.PartText || strings.TrimSpace(p.Text) != "" {
					out = append(out, fmt.Sprintf("%s %d %s %s %s", m.Role, p.Kind, p.Tool, p.CallID, p.Text))
				}
			}
		}
	}
	return out
}

func asChat(s Session) string {
	var all []codec.Raw
	for _, turn := range s.Turns {
		all = append(all, turn.Messages...)
	}
	return string(must(struct {
		Messages []codec.Raw `json:"messages"`
	}{all}))
}

// asClaudeCode writes a line for each block.
func asClaudeCode(t *testing.T, s Session) string {
	t.Helper()
	var b strings.Builder
	for _, turn := range s.Turns {
		for i, raw := range turn.Messages {
			var m struct {
				Role    string      `json:"role"`
				Content []codec.Raw `json:"content"`
			}
			if err := codec.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			for j, block := range m.Content {
				fmt.Fprintf(&b, `{"type":%q,"uuid":"%d-%d-%d","message":{"id":"%d-%d","role":%q,"content":[%s]}}`+"\n", m.Role, turn.Number, i, j, turn.Number, i, m.Role, block)
			}
		}
	}
	return b.String()
}

// A file that is compressed is known by its first bytes, and one that cannot be read is reported
// once, whatever is wrong with it.
func TestShapes(t *testing.T) {
	line := `{"messages":[{"role":"user","content":"hi"}]}` + "\n"
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl.zst": packed.String(), "b.jsonl.zst": "not read beside the other", "b.jsonl": packed.String(),
		"broken.json": "\x1f\x8b", "cut.jsonl.zst": packed.String()[:9], "many.jsonl": line + strings.Repeat("{\n", 9),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := Open(Auto, dir)
	if err != nil {
		t.Fatal(err)
	}
	var names, reported []string
	for s := range source.Sessions(func(err error) { reported = append(reported, strings.TrimPrefix(err.Error(), dir+"/")) }) {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a-1", "b-1", "many-1"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []string{"broken.json: unexpected EOF", "many.jsonl: line 2: jsontext: unexpected EOF after offset 2 (and 8 more)"}
	if diff := cmp.Diff(want, reported); diff != "" || source.Unknown != 1 {
		t.Errorf("%d unknown; reported (-want +got):\n%s", source.Unknown, diff)
	}
}

// A directory is read with all that lies below it; what is no transcript is counted, and
// names are unique.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	line := `{"type":"user","uuid":"1","message":{"role":"user","content":"hi"}}`
	for name, text := range map[string]string{
		"a/s.jsonl": line, "b/s.jsonl": line, "b/deep/über.jsonl": line, "b/package.json": `{"name":"x"}`, "b/notes.txt": "x",
		"c/" + strings.Repeat("long", 30) + ".json": `[{"role":"user","content":"hi"}]`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := Open(Auto, dir)
	if err != nil || source.Unknown != 1 {
		t.Fatalf("unknown %d, %v; want package.json alone", source.Unknown, err)
	}
	for range 2 { // the second time as the first
		var names []string
		for s := range source.Sessions(func(err error) { t.Error(err) }) {
			names = append(names, s.Name)
		}
		want := []string{"s", "-ber", "s-2", strings.Repeat("long", 30)[:55] + "-036856be"}
		slices.Sort(names)
		slices.Sort(want)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	}
}

// opencode's sessions are the same in its files and in its database, and are read once where it
// has moved them there.
func TestOpencode(t *testing.T) {
	files, rows := play(Auto, "testdata/opencode/storage"), play(Auto, "testdata/opencode/opencode.db")
	want := `session opencode-ses_1, openai
missing: encrypted reasoning 1
turn 1 at 16:00:01: model openai/gpt-5.2 0 usage {Input:900 CacheRead:600 CacheCreate:0 Output:47}
  {"role":"user","content":"Go on."}
  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"filePath\":\"a\"}"}}]}
turn 2 at 16:00:01:
  {"role":"tool","content":"no such file","tool_call_id":"c1"}
`
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	want += `session opencode-ses_2, openai
missing: turn that was taken back 1
turn 1 at 00:00:00: model openai/gpt-4o 0
  {"role":"user","content":"Kept"}
reported: testdata/opencode/opencode.db: msg_5: jsontext: invalid character 'o' in literal null (expecting 'u') after offset 1
`
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, play(Auto, "testdata/opencode")); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
}

// A database of another program is no transcript.
func TestOtherDatabase(t *testing.T) {
	if _, err := Open(Auto, "../sqlite/testdata/plain.db"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

// A directory or a file that cannot be read is a message.
func TestNothingToRead(t *testing.T) {
	dir := t.TempDir()
	for want, open := range map[string]func() (*Source, error){
		"no such file":                        func() (*Source, error) { return Open(Auto, filepath.Join(dir, "missing")) },
		"no *.traj, *.traj.json of swe-agent": func() (*Source, error) { return Open(SWEAgent, dir) },
		"no transcript of a known format":     func() (*Source, error) { return Open(Auto, "doc.go") },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Lines before the cut of a file are read, in every format of lines.
func TestCutFile(t *testing.T) {
	for from, line := range map[From]string{
		ClaudeCode: `{"type":"user","uuid":"1","message":{"role":"user","content":"hi"}}`,
		Compactd:   `{"session":"s","kind":"message","role":"user","content":[{"type":"text","text":"hi"}]}`,
		OpenAI:     `{"messages":[{"role":"user","content":"hi"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "cut.jsonl.gz")
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		fmt.Fprintln(w, line)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := Open(Auto, path)
		if err != nil {
			t.Fatal(err)
		}
		var reported []string
		n := 0
		for range source.Sessions(func(err error) { reported = append(reported, err.Error()) }) {
			n++
		}
		if n != 1 || len(reported) != 1 || !strings.HasSuffix(reported[0], "cut.jsonl.gz: line 2: unexpected EOF") {
			t.Errorf("%s: %d sessions, reported %q", from, n, reported)
		}
	}
}

// A BOM costs no line: editors of Windows write one.
func TestBOM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marked.jsonl")
	if err := os.WriteFile(path, []byte("\ufeff"+`{"messages":[{"role":"user","content":"hi"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := Open(Auto, path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range source.Sessions(func(err error) { t.Error(err) }) {
		n++
	}
	if n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A line beyond its bound is skipped, and never held: the lines around it stay.
func TestLongLine(t *testing.T) {
	for _, most := range []int{10, 100_000} { // below and above what is read at once
		long := strings.Repeat("0", most+1)
		for text, want := range map[string][]string{
			"a\n\n" + long + "\nb": {"1 a\n <nil>", "3  is too long to be read", "4 b <nil>"},
			"a\n" + long:           {"1 a\n <nil>", "2  is too long to be read"},
			"a\nb":                 {"1 a\n <nil>", "2 b <nil>"},
		} {
			var got []string
			eachLine(strings.NewReader(text), most, func(n int, line []byte, err error) {
				got = append(got, fmt.Sprintf("%d %s %v", n, line, err))
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines of at most %d (-want +got):\n%s", most, diff)
			}
		}
	}
}

// A file of errors is read in the memory of one of them.
func TestMemoryOfErrors(t *testing.T) {
	const lines = 200_000
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(path, []byte(`{"messages":[{"role":"user","content":"hi"}]}`+"\n"+strings.Repeat("{\n", lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := Open(Auto, path)
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	source.Read = func(int64) {
		if held := inUse() - before; held > 4<<20 {
			t.Errorf("%d errors hold %d MiB", lines, held>>20)
		}
	}
	var reported []string
	for range source.Sessions(func(err error) { reported = append(reported, err.Error()) }) {
	}
	if len(reported) != 1 || !strings.HasSuffix(reported[0], fmt.Sprintf("(and %d more)", lines-1)) {
		t.Errorf("reported %q", reported)
	}
}

// A list of numbers is looked at without memory for each, and a document of one line is known up to its bound.
func TestDetectLarge(t *testing.T) {
	numbers := []byte("[0" + strings.Repeat(",0", 1<<20) + "]")
	cost := linear.Of(3, func() {
		if from := detectValue(numbers); from != "" {
			t.Errorf("numbers are %s", from)
		}
	})
	if cost.Bytes > 1<<20 {
		t.Errorf("%d bytes for %d numbers", cost.Bytes, 1<<20)
	}
	document := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", maxLine) + `"}]}`
	if from := detectIn(strings.NewReader(document)); from != OpenAI {
		t.Errorf("a document of %d bytes is %q", len(document), from)
	}
}
