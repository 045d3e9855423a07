//go:build faults

package scenarios_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// P23: one tenant does not slow another. A hostile tenant makes each attack in turn, with one token
// and with four, against two tenants with 50 turns and 20 syncs a second each. Their answers are
// compared with those of the time before each attack, in rounds, since other programs use the
// machine too. The test fails for what is refused, lost, or held; make reliability compares times
// with what is demanded.
func TestFaultNoisyTenant(t *testing.T) {
	n := newNoisy(t)
	idle := n.process.memory("VmRSS")
	for _, a := range noisyAttacks {
		t.Run(a.name, func(t *testing.T) {
			n.t = t
			if a.prepare != nil {
				a.prepare(n)
			}
			for _, tokens := range []int{1, 4} {
				n.compare(a, tokens)
			}
		})
	}
	n.t = t
	lost := n.lost()
	figures.Print(t, "P23", "attacks", len(n.ratios), "p99_ratio_percent", slices.Max(n.ratios), "p99_ms", slices.Max(n.p99).Milliseconds(),
		"answers", n.answers, "refused", n.refused, "lost", lost, "memory_mb", noisyMemory, "idle_mb", idle, "rss_mb", n.peak)
	if n.refused > 0 || lost > 0 {
		t.Errorf("%d refused, %d lost", n.refused, lost)
	}
	if most := noisyMemory*5/4 + 60; n.peak > most {
		t.Errorf("%d MB resident, want %d", n.peak, most)
	}
	n.process.terminate()
}

const (
	noisyMemory = 512 // MiB, of --memory
	noisyRounds = 2
	noisyPhase  = 3 * time.Second
)

// noisy is a worker with a hostile tenant and two good ones.
type noisy struct {
	t       *testing.T
	process *process
	at      string
	client  *http.Client

	mu      sync.Mutex // guards the fields below
	times   []time.Duration
	sent    map[string]int // turns, by the path of a session
	ticks   int
	refused int
	answers int

	peak   int   // in MB
	ratios []int // in percent
	p99    []time.Duration
}

func newNoisy(t *testing.T) *noisy {
	tokens := filepath.Join(t.TempDir(), "tokens")
	n := &noisy{t: t, at: workertest.FreePort(t), sent: map[string]int{}, client: noisyClient()}
	lines := workertest.TokenLine("good-a", "a agent") + workertest.TokenLine("good-b", "b agent") + workertest.TokenLine("hostile-session", "hostile/s session")
	for i := range 4 {
		lines += workertest.TokenLine(fmt.Sprintf("hostile-%d", i), "hostile agent")
	}
	(&workertest.Edge{T: t, Tokens: tokens}).WriteTokens(lines)
	p := &process{t: t, bin: buildWorker(t), data: t.TempDir(), listen: workertest.FreePort(t)}
	p.args = []string{
		"--listen", p.listen, "--partitions", "8", "--memory", fmt.Sprintf("%dMiB", noisyMemory), "--http", "off",
		"--agents", n.at, "--agents-tokens", tokens, "--agents-rate", "100000",
	}
	t.Cleanup(p.kill)
	p.start()
	p.awaitReady()
	n.process = p
	return n
}

// do sends a request, and returns the status, 0 for none, and how many bytes came.
func (n *noisy) do(ctx context.Context, token, method, path, body string) (status int, bytes int64) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+n.at+path, strings.NewReader(body))
	if err != nil {
		n.t.Error(err)
		return 0, 0
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	resp, err := n.client.Do(r)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	bytes, _ = io.Copy(io.Discard, resp.Body) // an attack ends in the middle of an answer
	return resp.StatusCode, bytes
}

// good does the work of the two good tenants for a time, and returns how long its answers took.
func (n *noisy) good(d time.Duration) []time.Duration {
	const every = time.Second / 70
	n.times = nil
	var work sync.WaitGroup
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		i := n.ticks
		n.ticks++
		for _, tenant := range []string{"a", "b"} {
			work.Go(func() { n.step(tenant, i) })
		}
	}
	work.Wait()
	return n.times
}

// step is one turn, or one sync, of a tenant. Five of seven steps are turns.
func (n *noisy) step(tenant string, i int) {
	group, kind := i/7, i%7
	began := time.Now()
	var status int
	if kind < 5 {
		path := fmt.Sprintf("/v1/sessions/%s/turns-%d-%d", tenant, kind, group%5)
		body := fmt.Sprintf(`{"id":"%s-%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"step %d of the plan"}]}`, tenant, i, group/5+1, i)
		status, _ = n.do(n.t.Context(), "good-"+tenant, "POST", path+"/turns?wait_ms=8000", body)
		n.mu.Lock()
		n.sent[path]++
		n.mu.Unlock()
	} else {
		var history strings.Builder
		for m := range group%20 + 1 {
			fmt.Fprintf(&history, `{"role":%q,"content":"message %d"},`, []string{"user", "assistant"}[m%2], m)
		}
		path := fmt.Sprintf("/v1/sessions/%s/syncs-%d-%d/sync", tenant, kind, group/20)
		body := `{"model":{"provider":"openai","name":"gpt-4o"},"wait_ms":8000,"messages":[` + strings.TrimSuffix(history.String(), ",") + `]}`
		status, _ = n.do(n.t.Context(), "good-"+tenant, "POST", path, body)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.times = append(n.times, time.Since(began))
	if n.answers++; status != http.StatusOK {
		n.refused++
		n.t.Errorf("a good tenant is answered with %d", status)
	}
}

// lost counts turns of good tenants that their sessions have not got.
func (n *noisy) lost() (lost int) {
	for path, sent := range n.sent {
		tenant := strings.Split(path, "/")[3]
		status, _ := n.do(n.t.Context(), "good-"+tenant, "GET", fmt.Sprintf("%s/stats?turn=%d&wait_ms=8000", path, sent), "")
		if status != http.StatusOK {
			lost++
		}
	}
	return lost
}

// compare measures the good tenants between and during an attack.
func (n *noisy) compare(a noisyAttack, tokens int) {
	var before, loud []time.Duration
	peaks := filepath.Join("/proc", strconv.Itoa(n.process.cmd.Process.Pid), "clear_refs")
	if err := os.WriteFile(peaks, []byte("5"), 0); err != nil { // VmHWM begins again
		n.t.Fatal(err)
	}
	for range noisyRounds {
		before = append(before, n.good(noisyPhase)...)
		stop := n.attack(a, tokens)
		time.Sleep(noisyPhase / 6)
		loud = append(loud, n.good(noisyPhase)...)
		stop()
		time.Sleep(noisyPhase / 6)
	}
	without, during := percentile(before, 99), percentile(loud, 99)
	ratio := int(100 * during / max(without, 1))
	n.ratios, n.p99 = append(n.ratios, ratio), append(n.p99, during)
	peak := n.process.memory("VmHWM")
	n.peak = max(n.peak, peak)
	n.t.Logf("%s, %d tokens: p50 %s, p99 %s; without it %s, %s; %d MB", a.name, tokens, percentile(loud, 50), during, percentile(before, 50), without, peak)
}

// attackerOf names what TestNoisyAttacker does: an address, how many tokens it has, and an attack.
const attackerOf = "COMPACTD_TEST_ATTACKER"

// attack has a process of its own make an attack until stop. It takes no processor that the worker or
// the good tenants want: in the field it is elsewhere.
func (n *noisy) attack(a noisyAttack, tokens int) (stop func()) {
	n.t.Helper()
	cmd := exec.Command("nice", "-n", "19", os.Args[0], "-test.run=^TestNoisyAttacker$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", attackerOf, n.at, tokens, a.name))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			n.t.Errorf("the attacker: %v\n%s", err, out.String())
		}
	}
}

// TestNoisyAttacker is the process of attack, until its input ends. Elsewhere it does nothing.
func TestNoisyAttacker(t *testing.T) {
	at, what, _ := strings.Cut(os.Getenv(attackerOf), " ")
	count, name, _ := strings.Cut(what, " ")
	known := slices.IndexFunc(noisyAttacks, func(a noisyAttack) bool { return a.name == name })
	if known < 0 {
		return
	}
	a := noisyAttacks[known]
	tokens, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	n := &noisy{t: t, at: at, client: noisyClient()}
	ctx, stop := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	for i := range a.parallel {
		attack.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				a.once(ctx, n, fmt.Sprintf("hostile-%d", i%tokens), i, k)
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	attack.Wait()
}

func noisyClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
}

// percentile of times, which it sorts.
func percentile(times []time.Duration, p int) time.Duration {
	slices.Sort(times)
	return times[min(len(times)*p/100, len(times)-1)]
}

// noisyAttack is something that a hostile tenant does.
type noisyAttack struct {
	name     string
	parallel int
	prepare  func(*noisy)
	once     func(ctx context.Context, n *noisy, token string, i, k int)
}

func (n *noisy) hostile(path, body string) {
	n.t.Helper()
	if status, _ := n.do(n.t.Context(), "hostile-0", "POST", "/v1/sessions/hostile/"+path, body); status != http.StatusOK {
		n.t.Fatalf("prepare %s: %d", path, status)
	}
}

const hostilePath = "/v1/sessions/hostile/"

// drip opens a connection that sends a byte a second until ctx ends.
func (n *noisy) drip(ctx context.Context, head, bytes string) {
	c, err := net.Dial("tcp", n.at)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := io.WriteString(c, head); err != nil {
		return
	}
	for {
		if _, err := io.WriteString(c, bytes); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// unread sends requests, and reads no answer, until ctx ends.
func (n *noisy) unread(ctx context.Context, requests string) {
	c, err := net.Dial("tcp", n.at)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := io.WriteString(c, requests); err == nil {
		<-ctx.Done()
	}
}

var (
	largeText = strings.Repeat("words of a large message. ", 40_000) // 1 MB
	tinyOnes  = strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 4_000), ",")
	manyOnes  = `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 110_000), ",") + `]}`
	largeSync = `{"model":{"provider":"openai","name":"gpt-4.1"},"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+largeText+`"},`, 29), ",") + `]}`
	denseTurn = `{"turn":1,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[` +
		strings.TrimSuffix(strings.Repeat(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",`+
			`"function":{"name":"f","arguments":"[`+strings.Repeat("1,", 2_000)+`1]"}}]},`, 900), ",") + `]}`
	largeFiles = `{"attachments":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a.txt","text":"`+largeText[:900_000]+`"},`, 4), ",") + `]}`
)

var (
	smallSync = `{"model":{"provider":"openai","name":"gpt-4.1"},"wait_ms":0,"messages":[` + tinyOnes[:57_000/30*30-1] + `]}`
	halves    = `{"turn":1,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[{"role":"user","content":"` + strings.Repeat(`\ud800`, 600_000) + `"}]}`
	resources = func() string {
		var all []string
		for id := range 32 {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"compactd://session/generation/0"}}`, id))
		}
		return "[" + strings.Join(all, ",") + "]"
	}()
)

var noisyAttacks = []noisyAttack{
	{"none", 0, nil, nil},
	{"turns of dense arguments, not awaited", 8, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		n.do(ctx, token, "POST", fmt.Sprintf("%sdense-%d-%d/turns", hostilePath, i, k), denseTurn)
	}},
	{
		"rewinds of many tiny messages", 8,
		func(n *noisy) {
			for turn := 1; turn <= 10; turn++ {
				n.hostile("tiny/turns?wait_ms=8000", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[%s]}`, turn, tinyOnes))
			}
		},
		func(ctx context.Context, n *noisy, token string, _, k int) {
			if k%2 == 0 {
				n.do(ctx, token, "POST", hostilePath+"tiny/rewind", `{"generation":0}`)
			} else {
				n.do(ctx, token, "GET", hostilePath+"tiny/context", "")
			}
		},
	},
	{
		"searches", 16,
		func(n *noisy) {
			for turn := 1; turn <= 17; turn++ {
				n.hostile("search/turns?wait_ms=8000", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[{"role":"user","content":"%s"}]}`, turn, largeText))
			}
		},
		func(ctx context.Context, n *noisy, token string, _, _ int) {
			n.do(ctx, token, "GET", hostilePath+"search/recall?text=nowhere&limit=100", "")
		},
	},
	{
		"resources of a session, 32 a request", 48,
		func(n *noisy) {
			for turn := 1; turn <= 4; turn++ {
				n.hostile("s/turns?wait_ms=8000", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[%s]}`, turn, tinyOnes))
			}
		},
		func(ctx context.Context, n *noisy, _ string, _, _ int) {
			n.do(ctx, "hostile-session", "POST", "/mcp/hostile/s", resources)
		},
	},
	{"large syncs", 14, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		n.do(ctx, token, "POST", fmt.Sprintf("%slarge-%d-%d/sync", hostilePath, i, k), largeSync)
	}},
	{"checks of many messages", 16, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		n.do(ctx, token, "POST", hostilePath+"s/check", manyOnes)
	}},
	{"bodies that drip", 100, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		n.drip(ctx, "POST /v1/compress HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n")
	}},
	{"bodies of a session that do not end", 100, nil, func(ctx context.Context, n *noisy, _ string, _, _ int) {
		n.drip(ctx, "POST /mcp/hostile/s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hostile-session\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", " ")
	}},
	{"files to summarize", 32, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		n.do(ctx, token, "POST", hostilePath+"s/attach", largeFiles)
	}},
	{"rewinds of a large history", 8, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		n.do(ctx, token, "POST", hostilePath+"search/rewind", `{"generation":0}`)
	}},
	{"requests that are abandoned", 256, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		paths := []string{"search/context?turn=99&wait_ms=8000", "search/outcome?seq=1&wait_ms=8000", "search/context?page=2"}
		n.do(limited, token, "GET", hostilePath+paths[(i+k)%len(paths)], "")
	}},
	{"syncs just below 64 KiB", 128, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		n.do(ctx, token, "POST", fmt.Sprintf("%ssmall-%d-%d/sync", hostilePath, i, k), smallSync)
	}},
	{"syncs that publish nothing", 128, nil, func(ctx context.Context, n *noisy, token string, i, _ int) {
		n.do(ctx, token, "POST", fmt.Sprintf("%sdry-%d/sync", hostilePath, i), strings.Replace(smallSync, "{", `{"dry_run":true,`, 1))
	}},
	{"nameless histories", 64, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		n.do(ctx, token, "POST", "/v1/compress", fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":"%d-%d"},{"role":"assistant","content":"x"},%s]}`, i, k, tinyOnes[:50_000/30*30-1]))
	}},
	{"budgets for other models", 128, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		name := fmt.Sprintf("%d-%d", i, k)
		if i%2 == 0 {
			n.do(ctx, token, "GET", hostilePath+"tiny/stats?provider=p"+name+"&model=m"+name, "")
		} else {
			n.do(ctx, token, "POST", hostilePath+"tiny/check", fmt.Sprintf(`{"provider":"p","model":"m%s","context_window":1000,"messages":[]}`, name))
		}
	}},
	{"large answers that stay unread", 100, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		n.unread(ctx, strings.Repeat("GET "+hostilePath+"search/context HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n", 1_000))
	}},
	{"texts of half surrogates", 8, nil, func(ctx context.Context, n *noisy, token string, i, k int) {
		n.do(ctx, token, "POST", fmt.Sprintf("%shalves-%d-%d/turns", hostilePath, i, k), halves)
	}},
	{"events from the beginning", 8, nil, func(ctx context.Context, n *noisy, token string, _, _ int) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		n.do(ctx, token, "GET", hostilePath+"search/events?after=1", "")
	}},
}
