package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

// TestMain lets the test binary be the process that holds a directory.
func TestMain(m *testing.M) {
	if dir := os.Getenv("EMBEDDED_TEST_HOLD"); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

// hold is the other process: it runs a server on dir until it is killed.
func hold(dir string) {
	if _, err := Start(Config{Dir: dir}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding")
	select {}
}

// A directory belongs to one process at a time; kill -9 frees it.
func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "EMBEDDED_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "holding\n" {
		t.Fatalf("the other process printed %q, %v", line, err)
	}

	_, err = Start(Config{Dir: dir})
	used, ok := errors.AsType[*DirInUseError](err)
	if !ok {
		t.Fatalf("second server on the same directory: %v", err)
	}
	want := &DirInUseError{Dir: dir, Holder: fmt.Sprintf("process %d", cmd.Process.Pid)}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Error(diff)
	}

	cmd.Process.Kill() // SIGKILL
	cmd.Wait()
	srv, err := Start(Config{Dir: dir})
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	if _, err := Start(Config{Dir: dir}); err == nil {
		t.Error("this process opened its own directory twice")
	}
	srv.Stop()
	srv.Stop()
	again, err := Start(Config{Dir: dir})
	if err != nil {
		t.Fatalf("after Stop: %v", err)
	}
	again.Stop()
}

// A taken port is an error at once, which names the port and a way out, and is not in
// the log as well.
func TestPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dir := t.TempDir()
	var logged []string
	_, err = Start(Config{Dir: dir, Listen: ln.Addr().String(), Log: func(level, text string) {
		if level == "fatal" {
			logged = append(logged, text)
		}
	}})
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) || !strings.Contains(err.Error(), "--listen") {
		t.Fatalf("error is %v", err)
	}
	if len(logged) != 0 {
		t.Errorf("fatal messages: %q", logged)
	}
	srv, err := Start(Config{Dir: dir, Listen: "-1"})
	if err != nil {
		t.Fatalf("the directory is not free after a failed start: %v", err)
	}
	srv.Stop()
}

// Without Listen there is no socket; with a port alone it is on 127.0.0.1.
func TestListen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	srv, err := Start(Config{Dir: dir, Durability: DurablePower})
	if err != nil {
		t.Fatal(err)
	}
	if u := srv.ClientURL(); u != "" {
		t.Errorf("listens on %s", u)
	}
	if srv.StreamBytes() <= 0 || srv.StreamBytes() > maxStreamBytes {
		t.Errorf("proposes %d bytes for a stream", srv.StreamBytes())
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		t.Fatal(err)
	}
	if nc.MaxPayload() != DefaultMaxPayload {
		t.Errorf("max payload is %d", nc.MaxPayload())
	}
	nc.Close()
	srv.Stop()
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", st, err)
	}

	for listen, want := range map[string]string{
		"-1": "127.0.0.1:-1", "0": "127.0.0.1:-1", ":4222": "127.0.0.1:4222", "0.0.0.0:1": "0.0.0.0:1", "[::1]:9": "::1:9",
	} {
		host, port, err := splitListen(listen)
		if got := fmt.Sprintf("%s:%d", host, port); err != nil || got != want {
			t.Errorf("listen %q is %s, %v", listen, got, err)
		}
	}
}

// Every invalid field is in the one error.
func TestConfig(t *testing.T) {
	_, err := Start(Config{Listen: "host:port", Durability: "maybe", MaxPayload: -1, MaxStore: -1})
	for _, want := range []string{"dir is empty", `listen on "host:port"`, `durability "maybe"`, "max payload", "max store"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}
