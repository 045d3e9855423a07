package sanitize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/internal/summarize/sanitize"
)

// hostile are texts of n bytes that keep redaction busy: one word or form again and
// again, so that there is something to look at everywhere, and nothing is found.
func hostile() map[string]func(n int) string {
	out := map[string]func(n int) string{}
	add := func(name, unit string) {
		if unit != "" {
			out[name] = func(n int) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }
		}
	}
	signs := []string{"", " ", "=", ": ", `="`, `":"`, "\n", ",", "|", " = '", "--", ">", `\":\"`, "(", "=x1", "=a1b2c3d4e5f6g7h8 ", " is "}
	for i, w := range sanitize.Words() {
		add(fmt.Sprintf("word %q", w), w)
		for k := range 3 {
			sign := signs[(i+k*5)%len(signs)]
			add(fmt.Sprintf("word %q", w+sign), w+sign)
		}
	}
	for _, w := range []string{"password", "token", "key", "пароль", "_auth", "--secret"} {
		for _, sign := range signs {
			add(fmt.Sprintf("word %q", w+sign), w+sign)
		}
	}
	for i, s := range sanitize.Samples() {
		if i%3 != 0 {
			continue // chains of one rule differ little
		}
		add(fmt.Sprintf("sample %d %.20q", i, s), s)
		add(fmt.Sprintf("samples %d %.20q", i, s), s+" ")
		if len(s) > 2 {
			add(fmt.Sprintf("short %d %.20q", i, s), s[:len(s)-1]+" ")
			add(fmt.Sprintf("head %d %.20q", i, s), s[:min(len(s), 6)])
		}
	}
	all := strings.Join(sanitize.Words(), "=")
	add("all words", all)
	add("all words, lines", strings.ReplaceAll(all, "=", "\n"))
	add("all words, spaces", strings.ReplaceAll(all, "=", " "))
	for _, unit := range []string{
		"A", "a", "0", "=", "-", "_", ".", "/", "\\", "\"", "'", "`", " ", "\n", "\r\n", "\t", ":", "|", ",", "@", "%", "+", "*", "<", ">", "$", "{", "[",
		"aA0", "a.", "a-", "A=", "\\n", "\\\"", "é", "\u00ad", "\u200b", "a\u200b", "\uff50", "e\u0301", "\u0301", "\U0001d429", "世界", "\x1b[31m", "\x00", "\xff", "\xf0\x9f",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\n", "-----BEGIN ", "-----END", "-----END PRIVATE KEY-----", "-----END RSA private key",
		"-----BEGIN PRIVATE KEY-----" + strings.Repeat("A", 100) + "\n", strings.Repeat("A", 64) + "\n", strings.Repeat("A", 63) + "\\n", strings.Repeat("QUJD", 19) + "\n",
		"cGFzc3dvcmQ9aHVudGVyMiBpcyBhIHBhc3N3b3JkIA==\n", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCg", "://a:", "://a:b@", "://aaaaaaaaaaaaaaaaaa", "x://" + strings.Repeat("a", 300),
		"Authorization: Bearer ", "Authorization: a ", "Cookie: a=", "Cookie: a=bbbbbb; ", "bearer ", "bearer aaaaaaaaaaaaaaa", "basic a", "login a password ", "login ", ":5432:", "a:5432:b:c:",
		"password=password=", "password=\"", "password='", "password=\"token='secret=`", "password: |\n", "password,token,secret\n", "|password|token|\n|--|--|\n", "password,", "password\t",
		"<password>", "<password", "\"password\":{\"", "password \\\"", "passwordpassword", "PASSWORD_", "pass.pass-pass_", "key.", "mysql -p", "mysql -pa ", "curl -u a:", "curl -u ", "docker login -p ",
		"echo | chpasswd ", "identified by ", "eyJ", "eyJaaaaaaaaaa.", "eyeyey", "ey.", "EAAMEAAM", "ghp_", "sk-", "xoxb-1-", "SG.", "s.", "S", "AKIA", "T3BlbkFJ", "sk-proj-aaaaaaaa", "1234567890:AA",
		"-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIB", 16) + "\n", "name: DB_PASSWORD\n  value: ", "\"name\":\"DB_PASSWORD\",\"value\":\"", "the password is ", "password (", "password for a",
		"key=aaaaaaaaaa", "key=key=", "access=AbCd1234EfGh5678 ", "token = f(", "a" + strings.Repeat("=", 40), strings.Repeat("a", 50) + "key", "key" + strings.Repeat(" ", 20), "密码", "пароль: ", "contraseña=",
		"sourcegraph ", "sourcegraph 0123456789abcdef0123456789abcdef01234567 ", "private-lines: 9\n", "\" + \"", "a\"\n\"b", "a\nb", "a\\nb", "a\\\nb",
	} {
		add(fmt.Sprintf("repeat %.30q", unit), unit)
	}
	return out
}

func names() []string {
	var out []string
	for name := range hostile() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Whatever is written again and again, the work for four times as much of it is four
// times the work, and no byte is looked at very often. Work is counted in bytes, so
// that the machine says nothing.
func TestLinearWork(t *testing.T) {
	const n, mostPerByte = 4 << 10, sanitize.MaxWork
	all := hostile()
	worst, at, ratio := 0, "", 0.0
	for i, name := range names() {
		if i%3 != 0 && !strings.HasPrefix(name, "repeat") {
			continue // the benchmark has them all
		}
		_, one := sanitize.Once(all[name](n))
		_, four := sanitize.Once(all[name](4 * n))
		if four/(4*n) > worst {
			worst, at = four/(4*n), name
		}
		if one < n { // nothing to look at
			continue
		}
		r := float64(four) / float64(one)
		ratio = max(ratio, r)
		if r > 6 && four > 16*4*n || four > mostPerByte*4*n {
			t.Errorf("%s: %d and %d bytes looked at in %d and %d", name, one, four, n, 4*n)
		}
	}
	t.Logf("%d texts; four times the text is %.2f times the work at most; %d looks at a byte at most, in %s", len(all), ratio, worst, at)
}

// BenchmarkHostile prints the slowest of the texts.
func BenchmarkHostile(b *testing.B) {
	const n = 16 << 10
	all := hostile()
	type figure struct {
		name string
		rate float64
	}
	var rates []figure
	for _, name := range names() {
		text := all[name](n)
		took := time.Hour
		for range 3 {
			began := time.Now()
			sanitize.Redact(text)
			took = min(took, time.Since(began))
		}
		rates = append(rates, figure{name, float64(n) / 1e6 / took.Seconds()})
	}
	slices.SortFunc(rates, func(a, b figure) int { return int(1e6 * (a.rate - b.rate)) })
	for _, r := range rates[:40] {
		b.Logf("%7.1f MB/s  %s", r.rate, r.name)
	}
	for b.Loop() {
	}
	b.ReportMetric(rates[0].rate, "MB/s-worst")
	b.ReportMetric(float64(len(rates)), "texts")
}
