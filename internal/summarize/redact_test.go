package summarize_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/summarize/sanitize"
)

// random text of an alphabet that is the same in every run, and no secret of
// any user. Secrets are put together here, so that no scanner finds one in this
// file.
func random(seed uint64, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = alphabet[(seed>>33)%uint64(len(alphabet))]
	}
	return string(b)
}

const (
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower    = "abcdefghijklmnopqrstuvwxyz"
	digitSet = "0123456789"
	hexed    = "0123456789abcdef"
	alnum    = upper + lower + digitSet
)

// canary is a text that holds a secret of a kind.
type canary struct{ kind, text, secret string }

func canaries() []canary {
	pem := func(kind string) string {
		var b strings.Builder
		b.WriteString("-----BEGIN " + kind + "-----\n")
		for i := range 24 {
			b.WriteString(random(uint64(i)+77, alnum+"+/", 64) + "\n")
		}
		return b.String() + "-----END " + kind + "-----"
	}
	rsa := pem("RSA PRIVATE " + "KEY")
	key := rsa[strings.Index(rsa, "\n")+1 : strings.LastIndex(rsa, "\n-----END")]
	lines := strings.Split(rsa, "\n")
	var out []canary
	add := func(kind, before, secret, after string) {
		out = append(out, canary{kind, before + secret + after, secret})
	}
	add("aws access key", "", "AKIA"+random(1, upper+"234567", 16), "")
	add("aws secret key", "aws_secret_access_key = ", random(2, alnum+"/+", 39)+"Q", "")
	add("github token", "", "ghp_"+random(3, alnum, 36), "")
	add("github app token", "", "ghs_"+random(4, alnum, 36), "")
	add("gitlab token", "", "glpat-"+random(5, alnum, 20), "")
	add("slack bot token", "", "xoxb-"+random(6, digitSet, 12)+"-"+random(7, digitSet, 12)+"-"+random(8, alnum, 24), "")
	add("slack webhook", "https://hooks.slack.com/", "services/T"+random(9, upper+digitSet, 8)+"/B"+random(10, upper+digitSet, 8)+"/"+random(11, alnum, 24), "")
	add("private key", lines[0]+"\n", key, "\n"+lines[len(lines)-1])
	add("private key in JSON", `{"key": "`+lines[0]+`\n`, strings.ReplaceAll(key, "\n", `\n`), `\n`+lines[len(lines)-1]+`"}`)
	add("head of a private key", lines[0]+"\n", strings.Join(lines[1:9], "\n"), "")
	add("tail of a private key", "", strings.Join(lines[12:25], "\n"), "\n"+lines[len(lines)-1])
	add("jwt", "", "eyJ"+random(12, alnum, 30)+".eyJ"+random(13, alnum, 60)+"."+random(14, alnum, 43), "")
	add("openai key", "", "sk-proj-"+random(15, alnum, 74)+"T3Blbk"+"FJ"+random(16, alnum, 74), "")
	add("anthropic key", "", "sk-ant-api03-"+random(17, alnum, 93)+"AA", "")
	add("google key", "", "AIza"+random(18, alnum, 35), "")
	add("stripe key", "", "sk_live_"+random(19, alnum, 24), "")
	add("npm token", "", "npm_"+random(20, lower+digitSet, 36), "")
	add("hugging face token", "", "hf_"+random(21, lower, 34), "")
	add("sendgrid key", "", "SG."+random(22, alnum, 66), "")
	add("api key", "api_key=", random(23, alnum, 32), "")
	add("api key in hex", `"api_key": "`, random(24, hexed, 32), `"`)
	add("api key with a stop word", "API_KEY=", "client-test-"+random(25, alnum, 12), "")
	add("api key with a request to stay", "api_key=", random(26, alnum, 32), " # gitleaks:"+"allow")
	add("password", "DB_PASSWORD=", "hunter2"+random(27, lower, 3), "")
	add("password in JSON", `{"password":"`, "tr0ub4dor"+random(28, lower, 2), `"}`)
	add("password in quoted JSON", `"{\"password\":\"`, "tr0ub4dor"+random(29, lower, 2), `\"}"`)
	add("password flag", "mysql --password ", "s3cr3t"+random(30, lower, 5), " -u root")
	add("password in a connection string", "Server=db;User Id=sa;Password=", "Pa55"+random(31, alnum, 8), ";Encrypt=yes")
	add("password in a URL", "postgres://app:", "pw"+random(32, alnum, 6), "@db.internal:5432/app")
	add("password with @ in a URL", "redis://:", "p@ss"+random(33, alnum, 6), "@cache:6379")
	add("azure storage key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", random(34, alnum, 86)+"==", ";EndpointSuffix=core.windows.net")
	add("bearer token", "Authorization: Bearer ", random(35, alnum, 40), "")
	return out
}

// C9: no secret of any of these kinds survives, wherever it stands.
func TestRedactCanaries(t *testing.T) {
	all := canaries()
	if len(all) < 15 {
		t.Fatalf("%d kinds", len(all))
	}
	for _, c := range all {
		for _, frame := range []string{"%s", "I ran it, and it printed:\n%s\nThen I went on.", "```\n%s\n```", "     12\t%s\n     13\tend", "a  %s  b"} {
			text := fmt.Sprintf(frame, c.text)
			got := sanitize.Redact(text)
			if leaks(got, c.secret) {
				t.Errorf("%s in %q: %q", c.kind, frame, got)
			}
			if events.Units(got) > events.Units(text) {
				t.Errorf("%s: redaction made the text longer", c.kind)
			}
		}
	}
	t.Logf("%d kinds of secrets", len(all))
}

// C9: nor in a long text, however its pieces fall, of many lines or of one.
func TestRedactLongTexts(t *testing.T) {
	all := canaries()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(all).Draw(t, "canary")
		filler := rapid.SampledFrom([]string{"some ordinary words go here and there\n", "one endless line of plain words and "}).Draw(t, "filler")
		before := strings.Repeat(filler, 1+rapid.IntRange(0, 30_000).Draw(t, "before")/len(filler))
		text := before[rapid.IntRange(0, len(filler)).Draw(t, "shift"):] + "\n" + c.text + "\n" + strings.Repeat(filler, 100)
		if got := sanitize.Redact(text); leaks(got, c.secret) {
			t.Fatalf("%s survives", c.kind)
		}
	})
}

// leaks reports whether a text holds a secret or a good part of it.
func leaks(text, secret string) bool {
	for line := range strings.SplitSeq(strings.ReplaceAll(secret, `\n`, "\n"), "\n") {
		if n := min(len(line), 24); strings.Contains(text, line[:n]) || strings.Contains(text, line[len(line)-n:]) {
			return true
		}
	}
	return false
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

// A second look changes nothing, from many goroutines at once as from one, and a
// text never grows.
func TestRedactIsIdempotent(t *testing.T) {
	all := canaries()
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			if rapid.Bool().Draw(t, "secret") {
				c := rapid.SampledFrom(all).Draw(t, "canary")
				parts = append(parts, c.text[rapid.IntRange(0, len(c.text)/2).Draw(t, "from"):])
			} else {
				parts = append(parts, drawText(t, "text"))
			}
		}
		text := strings.Join(parts, rapid.SampledFrom([]string{"", " ", "\n", "=", `"`}).Draw(t, "between"))
		once := sanitize.Redact(text)
		if events.Units(once) > events.Units(text) {
			t.Fatalf("%d units became %d", events.Units(text), events.Units(once))
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

// recordedSecrets are the secrets of the recorded sessions: tokens that Phoenix signed,
// and the key of a test's settings.
var recordedSecrets = regexp.MustCompile(`SFMyNTY\.[\w.-]+|test-only-secret-base[\w-]+`)

// C9: redaction takes nothing else out of the recorded sessions than their secrets.
func TestRedactRealSessions(t *testing.T) {
	texts, bytes := 0, 0
	for _, s := range realSessions(t) {
		for _, m := range sessionMessages(t, s) {
			for _, p := range m.Parts {
				for _, text := range []string{p.Text, string(p.Args)} {
					texts, bytes = texts+1, bytes+len(text)
					want := recordedSecrets.ReplaceAllString(text, "[secret]")
					if got := recordedSecrets.ReplaceAllString(sanitize.Redact(text), "[secret]"); got != want {
						at := 0
						for at < min(len(got), len(want)) && got[at] == want[at] {
							at++
						}
						t.Errorf("%s turn %d: %q", s.Name, m.Turn, want[max(0, at-80):min(len(want), at+60)])
					}
				}
			}
		}
	}
	t.Logf("%d texts, %d bytes, nothing else taken out", texts, bytes)
}

// BenchmarkRedact reads the longest recorded session, and a text in which every
// rule has something to look at.
func BenchmarkRedact(b *testing.B) {
	var session []string
	for _, s := range realSessions(b) {
		if s.Name == "pi-before-compaction" {
			for _, m := range sessionMessages(b, s) {
				for _, p := range m.Parts {
					session = append(session, p.Text, string(p.Args))
				}
			}
		}
	}
	var dense []string
	for _, c := range canaries() {
		dense = append(dense, c.text)
	}
	for _, c := range []struct {
		name  string
		texts []string
	}{{"session", session}, {"dense", []string{strings.Repeat(strings.Join(dense, "\n"), 4)}}} {
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
