// Package cluster_test runs the NATS configuration of this directory, as it is, on a
// real server: what each user may do, and what a tenant cannot do whatever it tries.
package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/testkit/certs"
)

// startLimit bounds how long servers take to start.
const startLimit = 30 * time.Second

// directory is a copy of the configuration with certificates and secrets, which is the
// working directory until the test ends, as it is for a server that is run.
type directory struct{ t testing.TB }

func newDirectory(t *testing.T) *directory {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	f := &directory{t}
	authority := f.authority("ca")
	f.certificate("server", authority)
	if err := certs.Secrets("secrets", "system", "worker", "edge", "operator", "monitor", "acme", "globex"); err != nil {
		t.Fatal(err)
	}
	return f
}

func password(user string) string { return certs.Password(user) }

// options reads a configuration file as nats-server does, and moves ports and store to
// where a test can have them.
func (f *directory) options(file string) *server.Options {
	f.t.Helper()
	o, err := serverOptions(file)
	if err != nil {
		f.t.Fatal(err)
	}
	o.Host, o.Port, o.HTTPHost, o.HTTPPort = "127.0.0.1", -1, "", 0
	o.StoreDir = f.t.TempDir()
	o.NoSigs, o.NoLog = true, true
	return o
}

func serverOptions(file string) (*server.Options, error) { return server.ProcessConfigFile(file) }

func run(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(startLimit) {
		t.Fatalf("the server takes no connections within %s", startLimit)
	}
	return s
}

// single runs the one server of single.conf, and returns its address.
func (f *directory) single() string {
	f.t.Helper()
	return run(f.t, f.options("single.conf")).ClientURL()
}

// connectAs opens a connection as worker and publisher open theirs.
func connectAs(t testing.TB, url, user string) *nats.Conn {
	t.Helper()
	nc, err := dial(url, user, password(user), filepath.Join("certs", "ca.pem"))
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func dial(url, user, pass, ca string) (*nats.Conn, error) {
	return connect.Open(context.Background(), connect.Options{URL: url, User: user, Password: pass, CA: ca})
}

func newJS(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func (f *directory) authority(name string) *certs.Authority {
	f.t.Helper()
	a, err := certs.NewAuthority("certs", name)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

func (f *directory) certificate(name string, by *certs.Authority) {
	f.t.Helper()
	if err := by.Issue(name); err != nil {
		f.t.Fatal(err)
	}
}

func (f *directory) write(path string, data []byte) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// absolutePath is that of a file of this directory, wherever the test goes from here.
func absolutePath(t testing.TB, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// await polls until ok returns true: the server has no event for it.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(waitLimit), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %s for %s", waitLimit, what)
		}
	}
}
