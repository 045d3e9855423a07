package sanitize_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
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
		"key=aaaaaaaaaa", "key=key=", "access=AbCd1234EfGh5678 ", "token = f(", "a" + strings.Repeat("=", 40),
		strings.Repeat("a", 50) + "key", "key" + strings.Repeat(" ", 20), "密码", "пароль: ", "contraseña=",
		"sourcegraph ", "sourcegraph 0123456789abcdef0123456789abcdef01234567 ", "private-lines: 9\n", "\" + \"", "a\"\n\"b", "a\nb", "a\\nb", "a\\\nb",
		"%25", "%2525", "%70", "\\u0070", "\\\\\\\\u0070", "&#112;", "&amp;amp;", "=3D",
		"70 ", "112, ", "0x70,", "70:", "00000000: 7061 ", "00000000: 7061 7373\n", "H4sIAAAAAAAA/wAAAP//AQAA ", "eJwAAAAAAAAAAAAAAAAAAAAA ", strings.Repeat("MFRGG", 8) + " ",
		"<<< ", "echo a1b2c3 | ", "<(echo a1b2c3", "-u a:b1c2d3 ", "-u a -p b1c2d3 ", "a:b1c2d3e4@h ", "password a1b2c3d4 ",
		"a1b2c3d4 password ", "пароль a1b2c3d4 ", "login a1b2c3d4 ", "a1b2c3d4 / b1c2d3e4 ", "token is a1b2c3d4 ",
		"insert into t (password) values ('a'),", "('password','a'),", "copy t (password) from stdin;\na\n", "PASSWORD  TOKEN\na         b\n",
		"pin 1234 ", "pin is ", "backup codes a1b2-c3d4 ", "words abc def ghi ", "wallet ", "auth('a','b1c2d3e4')", "wallet('", "(\"", "/reset/" + strings.Repeat("a1B2", 9) + " ",
		`send "`, `; name="password"` + "\n\n", "\"kty\"", "\"d\":\"", "WIFI:;P:", "@tcp(", "new value: a1b2c3 ", "abc_" + strings.Repeat("aB3d", 9) + " ",
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
// that the speed of the machine does not matter.
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

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rate is how many MB of a text are redacted in a second of processor time: the best of
// some tries, since other programs take caches from this one. The collection of garbage
// is part of it.
func rate(text string, tries int, least time.Duration) float64 {
	best := 0.0
	for range tries {
		n, began := 0, cpu()
		took := time.Duration(0)
		for took <= least {
			sanitize.Redact(text)
			n += len(text)
			took = cpu() - began
		}
		best = max(best, float64(n)/1e6/took.Seconds())
	}
	return best
}

// figure is the rate of one text.
type figure struct {
	name string
	rate float64
}

// rates measures texts of 64 KB, and gives the slowest last. Of many only those that
// a first look finds slow are measured well.
func rates(texts map[string]func(n int) string) []figure {
	const size, slowest = 64 << 10, 80
	sanitize.Redact("password=x") // the rules are read
	out := make([]figure, 0, len(texts))
	for name, text := range texts {
		out = append(out, figure{name, rate(text(size), 1, 0)})
	}
	order := func(a, b figure) int { return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(out, order)
	for i := max(0, len(out)-slowest); i < len(out); i++ {
		out[i].rate = rate(texts[out[i].name](size), 3, 20*time.Millisecond)
	}
	slices.SortFunc(out, order)
	return out
}

// BenchmarkHostile prints how fast each hostile text is redacted, in MB a second of
// processor time, the slowest last (HOSTILE=regexp chooses texts).
func BenchmarkHostile(b *testing.B) {
	const least = 5
	chosen, texts := regexp.MustCompile(os.Getenv("HOSTILE")), hostile()
	maps.DeleteFunc(texts, func(name string, _ func(int) string) bool { return !chosen.MatchString(name) })
	figures := rates(texts)
	if len(figures) == 0 {
		b.Fatal("no text has such a name")
	}
	slow := 0
	for _, f := range figures {
		fmt.Printf("%7.1f MB/CPU-s  %s\n", f.rate, f.name) // a log has ten lines at most
		if f.rate < least {
			slow++
		}
	}
	for b.Loop() {
	}
	b.ReportMetric(figures[len(figures)-1].rate, "MB/CPU-s-worst")
	b.ReportMetric(float64(slow), "below-5")
	b.ReportMetric(float64(len(figures)), "texts")
}

// BenchmarkOrdinary prints the same of texts that sessions are full of.
func BenchmarkOrdinary(b *testing.B) {
	texts := map[string]func(int) string{}
	for name, unit := range ordinary {
		texts[name] = func(n int) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }
	}
	figures := rates(texts)
	for _, f := range figures {
		fmt.Printf("%7.1f MB/CPU-s  %s\n", f.rate, f.name) // a log has ten lines at most
	}
	for b.Loop() {
	}
	b.ReportMetric(figures[len(figures)-1].rate, "MB/CPU-s-worst")
}

// ordinary are an output of a server, sentences and code.
var ordinary = map[string]string{
	"logs": strings.Join([]string{
		`2026-11-03T08:14:07.221Z INFO  http: GET /v1/sessions/4f1c9f8e-0f7b-4a55-9a0f-6a7a2e9b2f10/context 200 14.2ms bytes=18233 remote=10.4.0.17:51322`,
		`2026-11-03T08:14:07.301Z WARN  pool: connection 17 to db-2.internal:5432 was idle for 600s, closed`,
		`{"level":"info","time":1793693647,"component":"scheduler","task":"reindex","shard":12,"took_ms":412,"message":"done"}`,
		`--- PASS: TestImport/duplicate_rows (0.04s)`,
		"npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.\n",
	}, "\n"),
	"prose": `The importer reads a file row by row, and writes what is valid into the table of its tenant. A row that cannot be read is kept with the reason, so that
we can look at it later; the others go on. Before a release we run it over the archive of last year and compare the counts. When they differ, the first
row that differs is printed with its number, and the run ends. It takes about four minutes on a laptop.
`,
	"code": `func (s *Store) Put(ctx context.Context, key string, rows []Row) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	for i, r := range rows {
		if _, err := tx.ExecContext(ctx, insert, key, i, r.Name, r.Amount*100); err != nil {
			return fmt.Errorf("row %d of %q: %w", i, key, err)
		}
	}
	return tx.Commit()
}
`,
}
