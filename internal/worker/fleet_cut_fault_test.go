//go:build faults

package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"compactd/internal/testkit/cluster"
)

// P6: a worker that is cut off from its server for longer than its lease still
// believes in it. When the link is back it writes nothing that stands.
func TestFaultFleetCut(t *testing.T) {
	t.Parallel()
	c := newCrew(t, buildWorker(t), time.Second, nil)
	c.links = map[*process]*cluster.Link{}
	for _, p := range c.workers {
		c.links[p] = cluster.NewLink(t, c.listen)
		p.args[1] = "nats://" + c.links[p].Address()
	}
	c.begin()
	const cuts = 6
	for range cuts {
		c.cutOff(c.one())
	}
	c.end()
	c.report(t, "cuts", cuts)
}

// cutOff blocks the link of a worker until others have its partitions.
func (c *crew) cutOff(p *process) {
	c.t.Helper()
	c.work()
	held, since := heldBy(p), time.Now()
	c.links[p].Cut()
	c.awaitServed(held, since, p)
	c.work()
	c.links[p].Heal()
	c.awaitBalance()
}

// P6: workers whose clocks are an hour fast, an hour slow and right hand over to each
// other as if all were right. The build of the whole standard library takes minutes.
func TestSoakFleetClock(t *testing.T) {
	t.Parallel()
	c := newCrew(t, buildWorker(t, "-overlay", skewedTime(t)), time.Second, nil)
	c.skew = map[*process]time.Duration{}
	for i, skew := range []time.Duration{time.Hour, -time.Hour, 0} {
		p := c.workers[i]
		c.skew[p], p.env = skew, []string{fmt.Sprintf("%s=%d", skewEnv, int(skew.Seconds()))}
	}
	c.begin()
	const rounds = 2
	for range rounds {
		for _, p := range c.workers {
			c.restarted(p)
			c.frozen([]*process{p})
		}
	}
	c.wantSkew()
	c.end()
	c.report(t, "rounds", rounds, "kills", c.kills)
}

// skewEnv is how many seconds the clock of a worker is fast.
const skewEnv = "COMPACTD_TEST_SKEW"

// skewedTime returns an overlay of the standard library in which [time.Now] is off by
// what the environment sets. Nothing else of the program is changed.
func skewedTime(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "\tsec, nsec, mono := runtimeNow()\n"
	before, after, ok := strings.Cut(string(source), "func Now() Time {\n")
	if !ok || !strings.Contains(after, reading) {
		t.Fatal("time.Now is written differently in this version of Go: adapt skewedTime")
	}
	skewed := before + "func Now() Time {\n" + strings.Replace(after, reading, reading+"\tsec += testSkew\n", 1) + fmt.Sprintf(`
var testSkew = func() (n int64) {
	s, _ := syscall.Getenv(%q)
	digits, sign := s, int64(1)
	if len(s) > 0 && s[0] == '-' {
		digits, sign = s[1:], -1
	}
	for _, d := range []byte(digits) {
		n = 10*n + int64(d-'0')
	}
	return sign * n
}()
`, skewEnv)
	skewed = strings.Replace(skewed, "import (\n", "import (\n\t\"syscall\"\n", 1)
	dir := t.TempDir()
	replacement, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err := errors.Join(err, os.WriteFile(replacement, []byte(skewed), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// wantSkew wants the log lines of the workers to show their clocks: otherwise nothing
// was skewed.
func (c *crew) wantSkew() {
	c.t.Helper()
	for i, p := range c.workers {
		said := tenures(p)
		if len(said) == 0 {
			c.t.Fatalf("worker %d says nothing", i)
		}
		if off := time.Until(said[len(said)-1].Time) - c.skew[p]; off.Abs() > 10*time.Minute {
			c.t.Errorf("the clock of worker %d is %s from what it should be", i, off)
		}
	}
}
