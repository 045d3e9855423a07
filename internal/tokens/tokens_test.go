package tokens_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/tokens"
)

// A token that is added is in the file by its hash alone, beside what was there; one that is removed is gone.
func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("# of the fleet"), 0o640); err != nil {
		t.Fatal(err)
	}
	expires := time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []tokens.Token{
		{Tenant: "acme", Role: tokens.RoleAgent, Expires: expires},
		{Tenant: tokens.AnyTenant, Role: tokens.RoleOperator},
		{Tenant: "acme", Session: "b64-Y2hhdCA0MkB4", Role: tokens.RoleSession},
	}
	for i := range want {
		secret, err := tokens.Add(path, want[i])
		if err != nil {
			t.Fatal(err)
		}
		want[i].Hash = tokens.HashOf(secret)
		if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), secret) || !strings.HasPrefix(string(data), "# of the fleet\n") {
			t.Errorf("%v: %s", err, data)
		}
	}
	got, err := tokens.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if removed, err := tokens.Remove(path, want[1].Hash.String()[:8]); err != nil || removed.Role != tokens.RoleOperator {
		t.Errorf("%+v, %v", removed, err)
	}
	for _, id := range []string{"", want[0].Hash.String()[:7], want[1].Hash.String(), "zzzzzzzz"} {
		if _, err := tokens.Remove(path, id); !errors.Is(err, tokens.ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if got, err = tokens.Read(path); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A file that has an error, or that another change holds, stays as it is; so does one for a token that no worker
// would take.
func TestChangeRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if _, err := tokens.Add(path, tokens.Token{Tenant: "a b", Role: tokens.RoleAgent}); err == nil {
		t.Error("a tenant with a space is taken")
	}
	if err := os.WriteFile(path, []byte("what is this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Add(path, tokens.Token{Tenant: "acme", Role: tokens.RoleAgent}); err == nil || !strings.Contains(err.Error(), "line 1: ") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Add(path, tokens.Token{Tenant: "acme", Role: tokens.RoleAgent}); err == nil || !strings.Contains(err.Error(), "another change is under way") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("%s, %v", data, err)
	}
}

// A signed token opens to what was signed; with a byte changed, or under another key, it does not.
func TestSign(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	of, a := tokens.HashOf("secret"), events.Address{Tenant: "acme", Session: "b64-Y2hhdCA0MkB4"}
	expires := time.Unix(4070908800, 0)
	text := tokens.Sign(key, of, a, expires)
	got, from, err := tokens.Open(key, text)
	if err != nil || from != of || got.Tenant != a.Tenant || got.Session != a.Session || !got.Expires.Equal(expires) || got.Role != tokens.RoleSession {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if _, _, err := tokens.Open(key, string(changed)); err == nil {
			t.Errorf("byte %d changed: it opens", i)
		}
		if _, _, err := tokens.Open(key, text[:i]); err == nil {
			t.Errorf("cut at %d: it opens", i)
		}
	}
	if _, _, err := tokens.Open([]byte(strings.Repeat("o", 32)), text); err == nil {
		t.Error("another key opens it")
	}
	if _, _, err := tokens.Open(nil, tokens.Sign(nil, of, a, expires)); err == nil {
		t.Error("no key opens it")
	}
}
