package cluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
)

// No client connects without TLS, without trust in the server's certificate, or without a
// password, and each error states what to do.
func TestTLS(t *testing.T) {
	f := newDirectory(t)
	url := f.single()
	f.authority("other")
	ca := filepath.Join("certs", "ca.pem")
	for _, c := range []struct{ what, user, pass, ca, hint string }{
		{"plain", "acme", password("acme"), "", "trust the authority"},
		{"another authority", "acme", password("acme"), filepath.Join("certs", "other.pem"), "trust the authority"},
		{"another's password", "acme", password("globex"), ca, "other credentials"},
		{"no password", "acme", "", ca, "other credentials"},
		{"no user", "", "", ca, "other credentials"},
		{"no such user", "initech", "a guess", ca, "other credentials"},
		{"no such file", "acme", password("acme"), "none.pem", "certificate of the authority"},
	} {
		nc, err := dial(strings.Replace(url, "tls:", "nats:", 1), c.user, c.pass, c.ca)
		if err == nil {
			nc.Close()
			t.Errorf("%s: connected", c.what)
			continue
		}
		if !strings.Contains(err.Error(), c.hint) || c.pass != "" && strings.Contains(err.Error(), c.pass) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	connectAs(t, url, "acme")
}

// With verify on, as the comment in server.conf states, a client needs a certificate of
// the same authority too.
func TestClientCertificates(t *testing.T) {
	f := newDirectory(t)
	other := f.authority("other")
	f.certificate("foreign", other)
	f.replace("server.conf", "  # verify: true ", "  verify: true ")
	url := f.single()
	dial := func(cert, key string) error {
		nc, err := connect.Open(context.Background(), connect.Options{
			URL: url, User: "acme", Password: password("acme"), CA: filepath.Join("certs", "ca.pem"), Cert: cert, Key: key,
		})
		if err == nil {
			nc.Close()
		}
		return err
	}
	if err := dial(filepath.Join("certs", "server.pem"), filepath.Join("certs", "server-key.pem")); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := dial(filepath.Join("certs", "foreign.pem"), filepath.Join("certs", "foreign-key.pem")); err == nil {
		t.Error("connected with the certificate of another authority")
	}
	if err := dial("", ""); err == nil || !strings.Contains(err.Error(), "client's certificate") {
		t.Errorf("without a certificate: %v", err)
	}
	if err := dial(filepath.Join("certs", "server.pem"), ""); err == nil || !strings.Contains(err.Error(), "key belong together") {
		t.Errorf("without a key: %v", err)
	}
}

// The server's own monitoring, which has no users, is on loopback, and the limits
// are those that compactd needs.
func TestServerOptions(t *testing.T) {
	newDirectory(t)
	for _, file := range []string{"single.conf", "node-1.conf", "node-2.conf", "node-3.conf"} {
		o, err := serverOptions(file)
		if err != nil {
			t.Fatal(err)
		}
		if !net.ParseIP(o.HTTPHost).IsLoopback() || o.HTTPSPort != 0 || o.ProfPort != 0 {
			t.Errorf("%s: monitoring on %s, profiling on %d", file, o.HTTPHost, o.ProfPort)
		}
		if o.MaxPayload < 8<<20 || o.JetStreamMaxStore < 40<<30 || o.TLSConfig == nil {
			t.Errorf("%s: max_payload %d, max_file_store %d, tls %v", file, o.MaxPayload, o.JetStreamMaxStore, o.TLSConfig != nil)
		}
		if o.NoAuthUser != "" || o.SystemAccount != "SYSTEM" {
			t.Errorf("%s: without a password one is %q, the system is %s", file, o.NoAuthUser, o.SystemAccount)
		}
	}
}

// setup makes certificates and passwords that the configuration takes, for a tenant
// more than the example has.
func TestSetup(t *testing.T) {
	worker, dir := buildWorker(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	f := &directory{t}
	if !has("openssl") {
		t.Skip("SKIPPED: openssl is not here, so deploy/cluster/setup was not tried; make deploy-check installs it")
	}
	t.Setenv("WORKER", worker)
	t.Setenv("ROUNDS", "")
	must(t, os.MkdirAll("secrets", 0o700))
	must(t, os.MkdirAll("passwords", 0o700))
	must(t, os.WriteFile("passwords/monitor", []byte("chosen by a person\n"), 0o600))
	must(t, os.WriteFile("secrets/operator.conf", []byte("password: \"\"\n"), 0o600)) // which anyone could log in with
	out, err := exec.CommandContext(t.Context(), "./setup", "initech").CombinedOutput()
	if err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), `include "tenants/initech.conf"`) {
		t.Errorf("setup does not say what to include: %s", out)
	}
	f.replace("accounts.conf", `  include "tenants/globex.conf"`, "  include \"tenants/globex.conf\"\n  include \"tenants/initech.conf\"")
	url := f.single()
	for _, user := range []string{"system", "worker", "edge", "operator", "monitor", "acme", "globex", "initech"} {
		pass, err := os.ReadFile(filepath.Join("passwords", user))
		if err != nil {
			t.Fatal(err)
		}
		nc, err := dial(url, user, strings.TrimSpace(string(pass)), filepath.Join("certs", "ca.pem"))
		if err != nil {
			t.Errorf("connect as %s: %v", user, err)
			continue
		}
		nc.Close()
		if info, err := os.Stat(filepath.Join("passwords", user)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("others may read the password of %s: %v, %v", user, info.Mode(), err)
		}
	}
	for _, bad := range []string{"worker", "a.b", "a*", ""} {
		if err := exec.CommandContext(t.Context(), "./setup", bad).Run(); err == nil {
			t.Errorf("setup takes %q for a tenant", bad)
		}
	}
	for user, cost := range map[string]string{"operator": "05", "monitor": "11"} { // random, and not
		hashed, err := os.ReadFile("secrets/" + user + ".conf")
		if err != nil || !strings.HasPrefix(string(hashed), `password: "$2a$`+cost) { // of worker, not of another program
			t.Errorf("%s, %v", hashed, err)
		}
	}
	testSetupAgain(t)
	if open, err := embedded.EmptyPasswords("single.conf"); err != nil || len(open) > 0 {
		t.Errorf("empty passwords: %v, %v", open, err)
	}
	if nc, err := dial(url, "operator", "", filepath.Join("certs", "ca.pem")); err == nil {
		nc.Close()
		t.Error("operator needs no password")
	}
	if _, err := dial(url, "initech", "", filepath.Join("certs", "ca.pem")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a password: %v", err)
	}
}

// setup leaves what is there, and reports it where other names or another cost were requested.
func testSetupAgain(t *testing.T) {
	for _, again := range []struct{ env, prints string }{
		{"SERVERS=nats-1 c.example", "certs/server.pem is not for c.example; remove it"},
		{"ROUNDS=12", "secrets/acme.conf has another cost than ROUNDS=12; remove it"},
		{"ROUNDS=30", "ROUNDS=30 is not between 4 and 15"},
		{"ROUNDS=5", "secrets/monitor.conf has another cost"},
		{"SERVERS=nats-1 nats-3", ""},
	} {
		setup := exec.CommandContext(t.Context(), "./setup")
		setup.Env = append(os.Environ(), again.env)
		if out, _ := setup.CombinedOutput(); !strings.Contains(string(out), again.prints) || again.prints == "" && len(out) > 0 {
			t.Errorf("%s: %q", again.env, out)
		}
	}
}

// buildWorker builds the program that hashes passwords where nothing else does.
func buildWorker(t *testing.T) string {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", worker, "compactd/cmd/worker").CombinedOutput(); err != nil {
		t.Fatalf("build worker: %v\n%s", err, out)
	}
	return worker
}

func has(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// Without a program that hashes, setup fails before it writes anything.
func TestSetupWithoutHash(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"bash", "env", "dirname", "mkdir", "sed", "grep", "openssl", "rm", "mv"} {
		if at, err := exec.LookPath(program); err == nil {
			must(t, os.Symlink(at, filepath.Join(bin, program)))
		}
	}
	setup := exec.CommandContext(t.Context(), "./setup")
	setup.Dir, setup.Env = dir, []string{"PATH=" + bin, "WORKER=" + filepath.Join(bin, "none")}
	out, err := setup.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "make build, or install apache2-utils or whois") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, made := range []string{"certs", "passwords", "secrets"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			t.Errorf("%s was made", made)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
