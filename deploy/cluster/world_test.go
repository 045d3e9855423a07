// Package cluster_test runs the NATS configuration of this folder, as it stands, on a
// real server: what each user may do, and what a tenant cannot do whatever it tries.
package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/crypto/bcrypt"

	"compactd/internal/broker"
)

// startLimit bounds how long servers take to start.
const startLimit = 30 * time.Second

// folder is a copy of the configuration with certificates and secrets, which is the
// working directory until the test ends, as it is for a server that is run.
type folder struct{ t testing.TB }

func newFolder(t *testing.T) *folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	f := &folder{t}
	authority := f.authority("ca")
	f.certificate("server", authority)
	for _, user := range []string{"system", "worker", "operator", "monitor", "acme", "globex"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(password(user)), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		f.write(filepath.Join("secrets", user+".conf"), fmt.Appendf(nil, "password: %q\n", hash))
	}
	return f
}

func password(user string) string { return "of-the-" + user }

// options reads a configuration file as nats-server does, and moves ports and store to
// where a test can have them.
func (f *folder) options(file string) *server.Options {
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
func (f *folder) single() string {
	f.t.Helper()
	return run(f.t, f.options("single.conf")).ClientURL()
}

// connect opens a connection as worker and publisher open theirs.
func connect(t testing.TB, url, user string) *nats.Conn {
	t.Helper()
	nc, err := dial(url, user, password(user), filepath.Join("certs", "ca.pem"))
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func dial(url, user, pass, ca string) (*nats.Conn, error) {
	return broker.Connect(context.Background(), broker.Options{URL: url, User: user, Password: pass, CA: ca})
}

func newJS(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// authority is one that signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (f *folder) authority(name string) authority {
	f.t.Helper()
	key := f.key()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	f.sign(name, c, key, authority{c, key})
	return authority{c, key}
}

func (f *folder) certificate(name string, by authority) {
	f.t.Helper()
	key := f.key()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	f.sign(name, c, key, by)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(filepath.Join("certs", name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func (f *folder) sign(name string, c *x509.Certificate, key *ecdsa.PrivateKey, by authority) {
	f.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, key.Public(), by.key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(filepath.Join("certs", name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (f *folder) key() *ecdsa.PrivateKey {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

func (f *folder) write(path string, data []byte) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// absolutePath is that of a file of this folder, wherever the test goes from here.
func absolutePath(t testing.TB, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// await asks until ok says yes: the server has no event for it.
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
