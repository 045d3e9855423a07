package agents_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// An idle reader costs at most 20 KB. Bounds hold for a tenant and for all.
func TestAgentsIdleReaders(t *testing.T) { idleReaders(t, 1_000) }

// idleReaders has a process open connections that receive the events of sessions without any,
// and measures what they cost this one.
func idleReaders(t *testing.T, readers int) {
	t.Helper()
	const bound = 20 << 10
	if err := maxFiles(uint64(readers + 1000)); err != nil {
		figures.Skipped(t, "P23", "too few files may be open")
		t.Skipf("SKIPPED: %d readers need more files than may be open: %v", readers, err)
	}
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Limiter = limit.New(limit.Config{Streams: 2 * readers}) }) // half of it for a tenant
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	openReaders(t, e.Listener.Addr(), "warm", 10)
	before := memory()
	openReaders(t, e.Listener.Addr(), "idle", readers-10)
	each := (memory() - before) / uint64(readers-10)
	figures.Print(t, "P23", "connections", readers, "sse_kb_per_connection", (each+1023)/1024)
	if each > bound {
		t.Errorf("an idle reader costs %d bytes, more than %d", each, bound)
	}
	conn, head, err := openReader(e.Listener.Addr(), "further")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !strings.HasPrefix(head, "HTTP/1.1 429 ") {
		t.Errorf("beyond the bound of a tenant: %s", head)
	}
	if status, got := e.Post("idle-7", "turns", workertest.BadTurn); status != 400 {
		t.Errorf("beside them: %d %+v", status, got)
	}
}

// maxFiles raises how many files the process may have open, to n.
func maxFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= n {
		return err
	}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: max(n, limit.Max)})
}

// openReader requests the events of a session, and returns the first bytes of the answer.
func openReader(addr, session string) (conn net.Conn, head string, err error) {
	conn, err = net.Dial("tcp", addr)
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(conn, "GET /v1/sessions/default/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", session, workertest.DefaultToken)
	buffer := make([]byte, 4<<10)
	size, err := conn.Read(buffer)
	if err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, string(buffer[:size]), nil
}

// readersOf names what TestReadersProcess opens: the address, the sessions' prefix and how many.
const readersOf = "COMPACTD_TEST_READERS"

// openReaders has a process of its own open as many readers, of a session each, until the test
// ends: both ends of ten thousand connections are more files than one process may have.
func openReaders(t *testing.T, addr, prefix string, count int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReadersProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", readersOf, addr, prefix, count))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process of the readers: %v\n%s", err, stderr.String())
		}
	})
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "open\n" {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("the process of the readers: %v\n%s%s", err, line, rest)
	}
}

// TestReadersProcess is the process of openReaders. Elsewhere it does nothing.
func TestReadersProcess(t *testing.T) {
	what := strings.Fields(os.Getenv(readersOf))
	if len(what) != 3 {
		return
	}
	count, err := strconv.Atoi(what[2])
	if err == nil {
		err = maxFiles(uint64(count + 1000))
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		conn, head, err := openReader(what[0], fmt.Sprintf("%s-%d", what[1], n))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
			t.Fatalf("reader %d: %s", n, head)
		}
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
}
