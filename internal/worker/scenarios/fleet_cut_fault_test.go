//go:build faults

package scenarios_test

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

// P6: a worker that is cut off from its server for longer than its lease does not notice that
// it is no longer the owner. When the link is back, the fence refuses its commits.
func TestFaultFleetCut(t *testing.T) {
	t.Parallel()
	f := newWorkerFleet(t, buildWorker(t), time.Second, nil)
	f.links = map[*process]*cluster.Link{}
	for _, p := range f.workers {
		f.links[p] = cluster.NewLink(t, f.listen)
		p.args[1] = "nats://" + f.links[p].Address()
	}
	f.begin()
	const cuts = 6
	for range cuts {
		f.cutOff(f.randomWorker())
	}
	f.end()
	f.report(t, "cuts", cuts)
}

// cutOff blocks the link of a worker until others have its partitions.
func (f *workerFleet) cutOff(p *process) {
	f.t.Helper()
	f.awaitOutcomes()
	held, since := heldBy(p), time.Now()
	f.links[p].Cut()
	f.awaitServed(held, since, p)
	f.awaitOutcomes()
	f.links[p].Heal()
	f.awaitBalance()
}

// P6: workers whose clocks are an hour fast, an hour slow and right hand over to each
// other as if all were right. The build of the whole standard library takes minutes.
func TestSoakFleetClock(t *testing.T) {
	t.Parallel()
	f := newWorkerFleet(t, buildWorker(t, "-overlay", skewedTime(t)), time.Second, nil)
	f.skew = map[*process]time.Duration{}
	for i, skew := range []time.Duration{time.Hour, -time.Hour, 0} {
		p := f.workers[i]
		f.skew[p], p.env = skew, []string{fmt.Sprintf("%s=%d", skewEnv, int(skew.Seconds()))}
	}
	f.begin()
	const rounds = 2
	for range rounds {
		for _, p := range f.workers {
			f.restart(p)
			f.freeze([]*process{p})
		}
	}
	f.wantSkew()
	f.end()
	f.report(t, "rounds", rounds, "kills", f.kills)
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

// wantSkew wants the times in the logs of the workers to be skewed.
func (f *workerFleet) wantSkew() {
	f.t.Helper()
	for i, p := range f.workers {
		logged := ownershipLines(p)
		if len(logged) == 0 {
			f.t.Fatalf("worker %d has logged no partition", i)
		}
		if off := time.Until(logged[len(logged)-1].Time) - f.skew[p]; off.Abs() > 10*time.Minute {
			f.t.Errorf("the clock of worker %d is %s from what it should be", i, off)
		}
	}
}
