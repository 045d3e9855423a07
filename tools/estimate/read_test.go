package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each transcript that cannot be used is a line: a session without usage, a bad line, a file that is no transcript.
// Messages of the system, another dialect and another model are no reason.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"used.jsonl": `{"session":"used","kind":"message","role":"system","content":[{"type":"text","text":"be brief"}]}
{"session":"used","kind":"message","role":"user","content":[{"type":"text","text":"go"}]}
{"session":"used","kind":"message","role":"assistant","model":"gpt-5.5","content":[{"type":"text","text":"done"}],"usage":{"input":300000}}
{"session":"used","kind":"message","role":"user","content":[{"type":"text","text":"go on"}]}
{"session":"used","kind":"message","role":"assistant","model":"gpt-5.5","content":[{"type":"text","text":"done"}],"usage":{"input":300009}}
`,
		"uncounted.jsonl": `{"session":"uncounted","kind":"message","role":"user","content":[{"type":"text","text":"go"}]}
{"session":"uncounted","kind":"message","role":"assistant","model":"gpt-5.5","content":[{"type":"text","text":"done"}]}
`,
		"chat.json": `{"model":"gpt-4o","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"go"},{"role":"assistant","content":"done"}]}`,
		"bad.jsonl": `{"session":"bad","kind":"message","role":"user","content":[{"type":"text","text":"go"}]}
{"session":"no good"}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	all, err := read(&out, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].name != "used/1" || all[0].window() != 1_050_000 {
		t.Fatalf("%+v", all)
	}
	for _, want := range []string{"left out: uncounted: no usage", "left out: chat: no usage", "bad.jsonl: line 2", "left out: bad: no usage"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, &out)
		}
	}
	if err := report(&out, all, estimators()); err != nil {
		t.Error(err)
	}
}
