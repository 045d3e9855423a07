package sanitize_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/testkit/realsessions"
	"compactd/internal/testkit/secrets"
)

// C9: no secret of any of these kinds survives, wherever it stands.
func TestRedactCanaries(t *testing.T) {
	all := secrets.All()
	if len(all) < 15 {
		t.Fatalf("%d kinds", len(all))
	}
	for _, c := range all {
		for _, frame := range []string{"%s", "I ran it, and it printed:\n%s\nThen I went on.", "```\n%s\n```", "     12\t%s\n     13\tend", "a  %s  b"} {
			text := fmt.Sprintf(frame, c.Text)
			got := sanitize.Redact(text)
			if secrets.Leak(got, c.Value) {
				t.Errorf("%s in %q: %q", c.Kind, frame, got)
			}
			if codec.Units(got) > codec.Units(text) {
				t.Errorf("%s: redaction made the text longer", c.Kind)
			}
		}
	}
	t.Logf("%d kinds of secrets", len(all))
}

// C9: nor in a long text, however its pieces fall, of many lines or of one.
func TestRedactLongTexts(t *testing.T) {
	all := secrets.All()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(all).Draw(t, "canary")
		filler := rapid.SampledFrom([]string{"some ordinary words go here and there\n", "one endless line of plain words and "}).Draw(t, "filler")
		before := strings.Repeat(filler, 1+rapid.IntRange(0, 30_000).Draw(t, "before")/len(filler))
		text := before[rapid.IntRange(0, len(filler)).Draw(t, "shift"):] + "\n" + c.Text + "\n" + strings.Repeat(filler, 100)
		if got := sanitize.Redact(text); secrets.Leak(got, c.Value) {
			t.Fatalf("%s survives", c.Kind)
		}
	})
}

// C9: what ordinary transcripts are full of is no secret.
func TestRedactKeeps(t *testing.T) {
	for _, s := range []string{
		"The key point: internal/summarize/testdata/anthropic.txt has it.",
		"token: internal/auth/session_token.go",
		"key: /home/user/project/src/auth/token/parser.go",
		"Fixed in 4f2a9c1 and 9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d00000000, see #142.",
		"cache key: 4f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b",
		"session key 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
		"idempotency key: 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
		`{"file_path":"/src/secrets/token_store.go","max_tokens":4096}`,
		"token := lexer.NextToken(input)", "password: string;", "const token = await getToken(req)",
		"max_tokens=128000 input_tokens: 4711", "if secret == nil {", "secret: config.auth.key1",
		"http://localhost:4873/@scope/package", "git@github.com:owner/repo.git", "ssh://git@host:22/x",
		"https://example.com/a/b?c=d#e", "mail me at mia_li_3668@example.com", "basic authentication is off",
		"data: toolu_01MGqJNAucDoKPyZKrzvWLmx", "call_9KXv0a1bCd2EfG3h", "commit 258c7280e1f2",
	} {
		if got := sanitize.Redact(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// plain are texts without a secret, for between them.
var plain = []string{
	"Fix the parser.", "You must never change the API.", "ABC-123 and #142 at 4f2a9c1", "- [ ] write the docs",
	"`go vet`: bad | worse: changed", "cat > out/n.md <<'EOF'\nx\nEOF", "data:image/png;base64,AAAA==",
	"日本語の文。次の文。", "🎉🎉🎉 done", "\u202eleft", "\x00\x07", "\x1b[31mred", "\u2028", "x y\tz", "\n",
	strings.Repeat("long words without end ", 40), strings.Repeat("𝕏", 300), "\xff\xfe broken",
}

// A second look changes nothing, from many goroutines at once as from one, and a
// text never grows.
func TestRedactIsIdempotent(t *testing.T) {
	all := secrets.All()
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			if rapid.Bool().Draw(t, "secret") {
				c := rapid.SampledFrom(all).Draw(t, "canary")
				parts = append(parts, c.Text[rapid.IntRange(0, len(c.Text)/2).Draw(t, "from"):])
			} else {
				parts = append(parts, rapid.SampledFrom(plain).Draw(t, "text"))
			}
		}
		text := strings.Join(parts, rapid.SampledFrom([]string{"", " ", "\n", "=", `"`}).Draw(t, "between"))
		once := sanitize.Redact(text)
		if codec.Units(once) > codec.Units(text) {
			t.Fatalf("%d units became %d", codec.Units(text), codec.Units(once))
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if again := sanitize.Redact(text); again != once {
					t.Errorf("another time: %q, want %q", again, once)
				}
			})
		}
		wg.Wait()
		if twice := sanitize.Redact(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

// sessions are the texts of each recorded session, by its name.
func sessions(t testing.TB) map[string][]string {
	t.Helper()
	all, err := transcripttest.Read(realsessions.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]string{}
	for _, s := range all {
		for _, turn := range s.Turns {
			messages, err := s.Format.ReadAll(turn.Messages)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				for _, p := range m.Parts {
					texts[s.Name] = append(texts[s.Name], p.Text, string(p.Args))
				}
			}
		}
	}
	return texts
}

// recordedSecrets are the secrets of the recorded sessions: tokens that Phoenix signed,
// and the key of a test's settings.
var recordedSecrets = regexp.MustCompile(`SFMyNTY\.[\w.-]+|test-only-secret-base[\w-]+`)

// C9: redaction takes nothing else out of the recorded sessions than their secrets.
func TestRedactRealSessions(t *testing.T) {
	texts, bytes := 0, 0
	for name, recorded := range sessions(t) {
		for _, text := range recorded {
			texts, bytes = texts+1, bytes+len(text)
			want := recordedSecrets.ReplaceAllString(text, "[secret]")
			if got := recordedSecrets.ReplaceAllString(sanitize.Redact(text), "[secret]"); got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("%s: %q", name, want[max(0, at-80):min(len(want), at+60)])
			}
		}
	}
	t.Logf("%d texts, %d bytes, nothing else taken out", texts, bytes)
}

// BenchmarkRedact reads the longest recorded session, and a text in which every
// rule has something to look at.
func BenchmarkRedact(b *testing.B) {
	var dense []string
	for _, c := range secrets.All() {
		dense = append(dense, c.Text)
	}
	for _, c := range []struct {
		name  string
		texts []string
	}{{"session", sessions(b)["pi-before-compaction"]}, {"dense", []string{strings.Repeat(strings.Join(dense, "\n"), 4)}}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(strings.Join(c.texts, ""))))
			for b.Loop() {
				for _, s := range c.texts {
					sanitize.Redact(s)
				}
			}
		})
	}
}
