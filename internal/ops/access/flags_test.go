package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"compactd/internal/broker/connect"
	"compactd/internal/ops/access"
)

// The hint of each cause of a connection error names a flag; any other error has no hint.
func TestHint(t *testing.T) {
	for _, cause := range []connect.Cause{connect.CauseServer, connect.CauseOther, connect.CauseUser, connect.CauseAuthority, connect.CausePlain, connect.CauseCertificate, connect.CauseClosed} {
		e := &connect.Error{Target: "nats://a", Cause: cause, Err: errors.New("no")}
		if got := access.Hint(fmt.Errorf("serve: %w", e)); !strings.Contains(got, "--") {
			t.Errorf("%s: %q", cause, got)
		}
		if strings.Contains(e.Error(), "--") || e.Error() == "connect to nats://a: no" {
			t.Errorf("%s: %v names a flag, or has no advice", cause, e)
		}
	}
	for _, err := range []error{nil, errors.New("no"), &connect.Error{}} {
		if got := access.Hint(err); got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// A file is one that is there; nothing is no file.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "a.creds")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]access.File{at: access.File(at), "": ""} {
		var f access.File
		if err := f.UnmarshalText([]byte(text)); err != nil || f != want {
			t.Errorf("%q: %q, %v", text, f, err)
		}
	}
	for _, text := range []string{dir, at + "x"} {
		var f access.File
		if err := f.UnmarshalText([]byte(text)); err == nil || f != "" {
			t.Errorf("%q is taken", text)
		}
	}
}

// A password from a file, as Kubernetes makes a variable of it, is that without the end of its line.
func TestSecret(t *testing.T) {
	for text, want := range map[string]string{"a b\n": "a b", "a\r\n": "a", " a ": " a ", "": ""} {
		t.Setenv("COMPACTD_NATS_PASSWORD", text)
		var f access.Flags
		k, err := kong.New(&f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Parse(nil); err != nil {
			t.Fatal(err)
		}
		if got := f.With(connect.Options{}).Password; got != want {
			t.Errorf("%q is the password %q, not %q", text, got, want)
		}
	}
}
