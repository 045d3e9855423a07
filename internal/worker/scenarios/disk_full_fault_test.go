//go:build faults

package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

// P12: a worker whose disk fills up reports it within five seconds, and loses nothing that was
// acknowledged. With free space again, and after the restart that the server needs, it
// continues.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	d := newSmallDisk(t, "8m")
	listen, monitor := workertest.FreePort(t), workertest.FreePort(t)
	p := &onSmallDisk{t: t, disk: d, bin: buildWorker(t), listen: listen, http: monitor, log: filepath.Join(t.TempDir(), "log")}
	d.do("head -c 1048576 /dev/zero >" + d.dir + "/filler")
	p.start()
	p.await(true)

	_, js := workertest.Dial(t, "nats://"+listen)
	acks, n := []ack{}, 0
	publish := func() error {
		at, data := subjectOfAgent(n%6), agentTurn(30+n%6, 1+n/6)
		n++
		one, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, err := js.Publish(one, at, data)
		if err == nil {
			acks = append(acks, ack{subject: at, seq: a.Sequence, data: data})
		}
		return err
	}
	var refused error
	for refused == nil {
		refused = publish()
	}
	began := time.Now()
	problems := p.await(false)
	took := time.Since(began)
	if found := d.do(fmt.Sprintf("%s doctor --listen %s --data %s/data 2>/dev/null; [ $? = 1 ]", p.bin, listen, d.dir)); !strings.Contains(found, "the disk of "+d.dir+"/data has too little room") {
		t.Errorf("the doctor reports\n%s", found)
	}
	p.stop()

	d.do("rm " + d.dir + "/filler")
	p.start()
	p.await(true)
	_, js = workertest.Dial(t, "nats://"+listen)
	lost := p.lost(js, acks)
	if lost > 0 {
		t.Errorf("%d of %d acknowledged turns are not in the log", lost, len(acks))
	}
	if err := publish(); err != nil {
		t.Errorf("publish after the restart: %v", err)
	}
	state, err := topology.State(t.Context(), js, topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), workertest.WaitLimit)
	defer cancel()
	if err := commit.AwaitCursor(ctx, js, partitions.New(2), state.Last); err != nil {
		t.Error(err)
	}
	p.stop()
	t.Logf("refused with %q; not ready: %s", refused, problems)
	figures.Print(t, "P12", "acks", len(acks), "lost", lost, "reported_ms", took.Milliseconds())
	if len(acks) < 10 {
		t.Error("the disk was full too early")
	}
}

// smallDisk is a file system in memory, in a mount namespace that needs no root.
type smallDisk struct {
	t     *testing.T
	dir   string
	shell io.Writer
	done  chan string // lines that the shell wrote
}

// newSmallDisk skips the test where the system does not allow it.
func newSmallDisk(t *testing.T, size string) *smallDisk {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "unshare", "-Ur", "-m", "mount", "-t", "tmpfs", "none", t.TempDir()).CombinedOutput(); err != nil {
		figures.Skipped(t, "P12", "no small disk without root on this system")
		t.Skipf("SKIPPED: no small disk without root on this system: %v: %s", err, out)
	}
	d := &smallDisk{t: t, dir: t.TempDir(), done: make(chan string, 16)}
	cmd := exec.Command("unshare", "-Ur", "-m", "sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = lineWriter(d.done), os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its last command's status is of no interest
	})
	d.shell = in
	d.do("mount -t tmpfs -o size=" + size + " none " + d.dir)
	return d
}

// do runs a command in the namespace of the disk, and returns what it prints.
func (d *smallDisk) do(command string) string {
	d.t.Helper()
	fmt.Fprintf(d.shell, "%s; echo $?\n", command)
	var output []string
	for {
		select {
		case line := <-d.done:
			if line == "0" {
				return strings.Join(output, "\n")
			}
			output = append(output, line)
		case <-time.After(workertest.WaitLimit):
			d.t.Fatalf("%s: %q", command, output)
		}
	}
}

// lineWriter sends each line that is written; the shell writes whole ones.
type lineWriter chan<- string

func (w lineWriter) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		w <- strings.TrimSpace(string(line))
	}
	return len(b), nil
}

// onSmallDisk is a worker with its data on a small disk.
type onSmallDisk struct {
	t                 *testing.T
	disk              *smallDisk
	bin, listen, http string
	log               string
}

func (p *onSmallDisk) start() {
	p.t.Helper()
	p.disk.do(fmt.Sprintf("%s --data %s/data --listen %s --http %s --partitions 2 --log-format json 2>>%s & pid=$!",
		p.bin, p.disk.dir, p.listen, p.http, p.log))
}

// stop sends SIGTERM and waits; with a full disk the exit may be an error.
func (p *onSmallDisk) stop() {
	p.t.Helper()
	p.disk.do("kill $pid; wait $pid; true")
}

// await waits until the worker is ready, or is not, and returns its problems.
func (p *onSmallDisk) await(ready bool) string {
	p.t.Helper()
	var r worker.Readiness
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(workertest.WaitLimit); time.Now().Before(deadline); <-tick.C {
		if err := p.readiness(&r); err == nil && r.Ready == ready {
			var problems []string
			for _, one := range r.Problems {
				problems = append(problems, one.Check+": "+one.Message)
			}
			return strings.Join(problems, "; ")
		}
	}
	log, _ := os.ReadFile(p.log) // for the message only
	p.t.Fatalf("readyz reports %+v, want ready %t\n%s", r, ready, log)
	return ""
}

func (p *onSmallDisk) readiness(r *worker.Readiness) error {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.http+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	*r = worker.Readiness{}
	return json.NewDecoder(resp.Body).Decode(r)
}

// lost counts the acknowledged turns that the log does not contain as they were published.
func (p *onSmallDisk) lost(js jetstream.JetStream, acks []ack) (lost int) {
	p.t.Helper()
	held := map[uint64]string{}
	err := stream.ReadStream(p.t.Context(), js, topology.LogStream, "log.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseLog(m.Subject())
		held[seq] = events.Published(events.KindTurn, at.Address) + string(m.Data())
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range acks {
		if held[a.seq] != a.subject+string(a.data) {
			lost++
		}
	}
	return lost
}
