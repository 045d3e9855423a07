package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the README work for the users that it names, and a command that is not for a user ends at once with the
// reason. A copy of the store, of a server that is stopped, has all sessions.
func TestCommands(t *testing.T) {
	bin, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin+"/", "compactd/cmd/worker", "compactd/cmd/publisher").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	sessions, err := filepath.Abs(filepath.Join("..", "..", "examples", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	f := newDirectory(t)
	o := f.options("single.conf")
	s := run(t, o)
	url := s.ClientURL()
	w := startWorker(t, url, 1)
	command := func(user, program string, args ...string) (string, error) {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
		c.Env = append(os.Environ(), "NATS_URL="+url, "COMPACTD_TLS_CA="+filepath.Join("certs", "ca.pem"), "COMPACTD_NATS_USER="+user, "COMPACTD_NATS_PASSWORD="+password(user))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	check := func(fails bool, want []string, user, program string, args ...string) {
		t.Helper()
		out, err := command(user, program, args...)
		if (err != nil) != fails {
			t.Errorf("%s as %s: %v\n%s", program, user, err, out)
		}
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s as %s prints no %q:\n%s", program, user, part, out)
			}
		}
	}
	one := filepath.Join(sessions, "example-fix-validator.jsonl.gz")
	check(false, []string{"example-fix-validator", "1 session, 29 turns, ", "undelivered outcomes 0", "One of them: "}, "acme", "publisher", "--tenant", "acme", "replay", one)
	check(false, []string{"1 session, 29 turns, ", " compactions published before this replay"}, "acme", "publisher", "--tenant", "acme", "replay", one)
	check(true, []string{"globex", "hint: The server keeps this user to its own tenant"}, "acme", "publisher", "--tenant", "globex", "replay", one)
	check(true, []string{"STREAM.INFO", "hint: The command reads the streams, which no tenant"}, "acme", "publisher", "--tenant", "acme", "load", "--sessions", "1", "--turns", "1")
	for _, user := range []string{"acme", "edge"} {
		check(true, []string{"Permissions Violation", "STREAM.INFO.SESSIONS", "hint: The server keeps this user from it: use the operator's"}, user, "worker", "inspect")
	}
	check(true, []string{"streams", `forbidden: Permissions Violation for Publish to "$JS.API.STREAM.INFO.SESSIONS"`}, "acme", "worker", "doctor")
	check(true, []string{"ok       streams", `forbidden: Permissions Violation for Publish to "$JS.API.STREAM.MSG.GET.OUTCOMES"`}, "monitor", "worker", "doctor")
	for user, subject := range map[string]string{"acme": "$JS.API.STREAM.INFO.SESSIONS", "monitor": "$JS.API.STREAM.", "operator": "$KV.MEMBERS."} {
		check(true, []string{"worker failed", subject, `"code":"forbidden"`, "accounts.conf"}, user, "worker", "--http", "off", "--data", filepath.Join(bin, user))
	}
	check(false, []string{"PARTITION", "WORKER"}, "operator", "worker", "inspect")
	check(false, []string{"WORKER", "session of 1 tenant", "acme.example-fix-validator"}, "operator", "publisher", "top", "--once")
	check(false, []string{"session of acme", "\nexample-fix-validator"}, "acme", "publisher", "--tenant", "acme", "top", "--once")
	for _, user := range []string{"acme", "operator"} { // a read by a tenant is its own
		check(false, []string{"example-fix-validator: generation"}, user, "publisher", "--tenant", "acme", "context", "--session", "example-fix-validator")
		if out, err := command("operator", "publisher", "audit"); err != nil || strings.Contains(out, "context") != (user == "operator") {
			t.Errorf("the audit log after a read by %s: %v\n%s", user, err, out)
		}
	}
	w.stop()

	s.Shutdown()
	s.WaitForShutdown()
	restored := f.options("single.conf")
	if err := os.CopyFS(restored.StoreDir, os.DirFS(o.StoreDir)); err != nil {
		t.Fatal(err)
	}
	url = run(t, restored).ClientURL()
	check(false, []string{"equal: ", "1 session"}, "worker", "worker", "replay")
	w = startWorker(t, url, 1)
	check(false, []string{"\nexample-fix-validator"}, "acme", "publisher", "--tenant", "acme", "sessions")
	w.stop()
}
