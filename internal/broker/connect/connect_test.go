package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/embedded"
)

// A connection survives a restart of the server behind it, and so does a reader.
func TestReconnect(t *testing.T) {
	dir := t.TempDir()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	back, lost := make(chan string, 8), make(chan error, 8)
	nc, err := Open(t.Context(), Options{
		URL: srv.ClientURL(), OnReconnect: func(u string) { back <- u }, OnDisconnect: func(err error) { lost <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	addr := strings.TrimPrefix(srv.ClientURL(), "nats://")
	srv.Stop()
	<-lost
	srv, err = embedded.Start(embedded.Config{Dir: dir, Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	if got := <-back; got != srv.ClientURL() {
		t.Errorf("back at %s, not %s", got, srv.ClientURL())
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
	_, err = Open(t.Context(), Options{URL: "nats://joe:secret@" + addr + ", token@" + addr})
	if err == nil || !strings.Contains(err.Error(), "joe:xxxxx@"+addr) || foundCause(err) != CauseServer {
		t.Errorf("error is %v", err)
	}
	if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "token")) {
		t.Errorf("error shows a secret: %v", err)
	}
	_, err = Open(t.Context(), Options{URL: addr, Creds: "/no/such.creds"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), ".creds file of a user") {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{URL: addr}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// A slow server's PING comes before the PONG of the handshake: the connect is tried again.
func TestConnectToSlowServer(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for slow := range 3 {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			if slow < 2 {
				_, _ = io.WriteString(from, "INFO {\"server_id\":\"slow\",\"version\":\"2.11.0\",\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\nPING\r\n")
				continue
			}
			to, err := net.Dial("tcp", strings.TrimPrefix(srv.ClientURL(), "nats://"))
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(to, from) }()
			go func() { _, _ = io.Copy(from, to) }()
		}
	}()
	nc, err := Open(t.Context(), Options{URL: "nats://" + ln.Addr().String(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// The error names the server at a wrong address, and what to do: most often the port is another one.
func TestConnectToOther(t *testing.T) {
	serve := func(body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	idle, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for want, addr := range map[string]string{
		"is an HTTP server": serve("hello"), "is the monitoring of a NATS server": serve("<title>NATS</title>"),
		"is the HTTP of a compactd worker": serve(`{"v":1,"name":"compactd"}`), "does not greet as NATS does": idle.Addr().String(),
	} {
		_, err := Open(t.Context(), Options{URL: "nats://" + addr, Timeout: time.Second})
		if foundCause(err) != CauseOther || !strings.Contains(err.Error(), "at "+addr) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "4222 by default") {
			t.Errorf("%s: error is %v", want, err)
		}
	}
}

// Who is refused is named, never with a password.
func TestConnectRefused(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, Username: "joe", Password: "secret", NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	addr := srv.Addr().String()
	for want, o := range map[string]Options{
		`it refuses user "ann" with this password`: {URL: addr, User: "ann", Password: "hidden"},
		`it refuses user "bob" with this password`: {URL: "nats://bob:hidden@" + addr},
		`it refuses user "eve" without a password`: {URL: addr, User: "eve"},
		"it refuses this token":                    {URL: "nats://hidden@" + addr},
		"no user was named":                        {URL: addr},
	} {
		_, err := Open(t.Context(), o)
		if foundCause(err) != CauseUser || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: error is %v", want, err)
		}
	}
}

func foundCause(err error) Cause {
	e, _ := errors.AsType[*Error](err)
	return e.Cause
}

// User and password may stand in the URL; without them the error contains what to do.
func TestConnectUser(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, Username: "joe", Password: "secret", NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	addr := srv.Addr().String()
	nc, err := Open(t.Context(), Options{URL: "nats://joe:secret@" + addr, Name: "me"})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	_, err = Open(t.Context(), Options{URL: addr})
	if !errors.Is(err, nats.ErrAuthorization) || foundCause(err) != CauseUser || strings.Contains(err.Error(), "--") {
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
	if _, err := Open(ctx, Options{URL: ln.Addr().String(), Timeout: 2 * time.Second}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
