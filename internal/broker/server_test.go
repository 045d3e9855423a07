package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// hold is the other process: it runs a server on dir until it is killed.
func hold(dir string) {
	if _, err := StartServer(ServerConfig{Dir: dir}); err != nil {
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
	cmd.Env = append(os.Environ(), "BROKER_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "holding\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}

	_, err = StartServer(ServerConfig{Dir: dir})
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
	srv, err := StartServer(ServerConfig{Dir: dir})
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	if _, err := StartServer(ServerConfig{Dir: dir}); err == nil {
		t.Error("this process opened its own directory twice")
	}
	srv.Stop()
	srv.Stop()
	again, err := StartServer(ServerConfig{Dir: dir})
	if err != nil {
		t.Fatalf("after Stop: %v", err)
	}
	again.Stop()
}

// What was stored is there after a restart, and streams keep their creation time.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	w := openWorld(t, dir, Topology{Partitions: 4})
	w.turn("a", "one")
	c := w.takeOver("first")
	if err := c.Commit(t.Context(), budgets(3, "x"), Marker{Cursor: 1, LastID: "e1"}); err != nil {
		t.Fatal(err)
	}
	before, marker := w.streams.Log.Created, w.marker(1)
	w.nc.Close()
	w.srv.Stop()

	w = openWorld(t, dir, Topology{})
	if !w.streams.Log.Created.Equal(before) {
		t.Errorf("log created %s, was %s", w.streams.Log.Created, before)
	}
	if w.streams.Log.Last != 1 || w.streams.Outcomes.Last != 4 {
		t.Errorf("last sequences are %d and %d", w.streams.Log.Last, w.streams.Outcomes.Last)
	}
	if diff := cmp.Diff(marker, w.marker(1), cmp.AllowUnexported(Stored{})); diff != "" {
		t.Error(diff)
	}
}

// A connection survives a restart of the server behind it, and so does a reader.
func TestReconnect(t *testing.T) {
	dir := t.TempDir()
	srv, err := StartServer(ServerConfig{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	back, lost := make(chan string, 8), make(chan error, 8)
	nc, err := Connect(t.Context(), Options{
		URL: srv.ClientURL(), OnReconnect: func(u string) { back <- u }, OnDisconnect: func(err error) { lost <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	addr := strings.TrimPrefix(srv.ClientURL(), "nats://")
	srv.Stop()
	<-lost
	srv, err = StartServer(ServerConfig{Dir: dir, Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	if got := <-back; got != srv.ClientURL() {
		t.Errorf("back at %s, not %s", got, srv.ClientURL())
	}
}

// A taken port is an error at once, which names the port and a way out.
func TestPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dir := t.TempDir()
	var logged []string
	start := time.Now()
	_, err = StartServer(ServerConfig{Dir: dir, Listen: ln.Addr().String(), Log: func(level, text string) {
		if level == "fatal" {
			logged = append(logged, text)
		}
	}})
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) || !strings.Contains(err.Error(), "--listen") {
		t.Fatalf("error is %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
	if len(logged) != 1 {
		t.Errorf("fatal messages: %q", logged)
	}
	srv, err := StartServer(ServerConfig{Dir: dir, Listen: "-1"})
	if err != nil {
		t.Fatalf("the directory is not free after a failed start: %v", err)
	}
	srv.Stop()
}

// Without Listen there is no socket; with a port alone it is on 127.0.0.1.
func TestListen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	srv, err := StartServer(ServerConfig{Dir: dir, Durability: DurablePower})
	if err != nil {
		t.Fatal(err)
	}
	if u := srv.ClientURL(); u != "" {
		t.Errorf("listens on %s", u)
	}
	if srv.StreamBytes() <= 0 || srv.StreamBytes() > defaultMaxBytes {
		t.Errorf("proposes %d bytes for a stream", srv.StreamBytes())
	}
	nc, err := srv.Connect(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if MaxPayload(nc) != DefaultMaxPayload {
		t.Errorf("max payload is %d", MaxPayload(nc))
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
func TestServerConfig(t *testing.T) {
	_, err := StartServer(ServerConfig{Listen: "host:port", Durability: "maybe", MaxPayload: -1, MaxStore: -1})
	for _, want := range []string{"dir is empty", `listen on "host:port"`, `durability "maybe"`, "max payload", "max store"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

// The first connect fails with a hint, and never shows a password.
func TestConnectFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	_, err = Connect(t.Context(), Options{URL: "nats://joe:secret@" + addr + ", token@" + addr})
	if err == nil || !strings.Contains(err.Error(), "joe:xxxxx@"+addr) || !strings.Contains(err.Error(), "--nats") {
		t.Errorf("error is %v", err)
	}
	if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "token")) {
		t.Errorf("error shows a secret: %v", err)
	}
	_, err = Connect(t.Context(), Options{URL: addr, Creds: "/no/such.creds"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "--creds") {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(ctx, Options{URL: addr}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// User and password may stand in the URL; without them the error says what to do.
func TestConnectUser(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, Username: "joe", Password: "secret", NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	addr := srv.Addr().String()
	nc, err := Connect(t.Context(), Options{URL: "nats://joe:secret@" + addr, Name: "me"})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	_, err = Connect(t.Context(), Options{URL: addr})
	if !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "--creds") {
		t.Errorf("error is %v", err)
	}
}

// A server that never greets does not hold Connect beyond its context.
func TestConnectContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		cancel()
		defer conn.Close()
		conn.Read(make([]byte, 1)) // until the client is gone
	}()
	if _, err := Connect(ctx, Options{URL: ln.Addr().String(), Timeout: 2 * time.Second}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
