package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/tokens"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
)

// The token of a tenant mints tokens of its sessions, which any worker with the key takes for MCP alone, until
// they expire or the token of the tenant is revoked. No other token mints, and no other key's is taken.
func TestMintedTokens(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	file := func(name, key string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := strings.Repeat("k", 32)
	with := func(path string) *workertest.Edge {
		return env.StartEdge(r.Worker, func(c *agents.Config) { c.SigningKey = path })
	}
	e, same, other, none := with(file("key", secret)), with(file("key", secret)), with(file("key", strings.Repeat("o", 32))), env.StartEdge(r.Worker, nil)

	const name = "thread 7/a"
	const path = "/v1/sessions/default/thread%207%2Fa"
	e.Post(name, "turns", `{"turn":1,"messages":[{"role":"user","content":"odd"}]}`)
	mint := func(e *workertest.Edge, token, path string, want int) (out events.TokenResponse) {
		t.Helper()
		status, text := e.Do(token, "POST", path, "")
		if status != want {
			t.Fatalf("%s: %d %s, want %d", path, status, text, want)
		}
		if status == 200 {
			if err := codec.Unmarshal([]byte(text), &out); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"turn":1}}}`
	use := func(e *workertest.Edge, token, path string, want int) {
		t.Helper()
		status, text := e.Do(token, "POST", path, call, "Accept", "application/json, text/event-stream", "Content-Type", "application/json")
		if status != want || (status == 200) != strings.Contains(text, "odd") {
			t.Errorf("%s: %d %s, want %d", path, status, text, want)
		}
	}
	minted := mint(e, workertest.DefaultToken, path+"/token", 200)
	if left := time.Until(time.UnixMilli(minted.Expires)); left > time.Hour || left < 50*time.Minute || minted.Path != "/mcp/default/thread%207%2Fa" {
		t.Errorf("%+v", minted)
	}
	use(e, minted.Token, minted.Path, 200)
	use(same, minted.Token, minted.Path, 200)
	use(other, minted.Token, minted.Path, 401)
	use(none, minted.Token, minted.Path, 401)
	use(e, minted.Token, "/mcp/default/s1", 403)
	use(e, minted.Token, "/mcp/acme/thread%207%2Fa", 403)
	use(e, minted.Token[:len(minted.Token)-1], minted.Path, 401)
	if status, text := e.Do(minted.Token, "GET", path+"/context", ""); status != 403 {
		t.Errorf("a path of agents: %d %s", status, text)
	}
	use(e, mint(e, workertest.OperatorToken, path+"/token?expires_in_s=60", 200).Token, minted.Path, 200)

	mint(e, minted.Token, path+"/token", 403)
	mint(e, workertest.AcmeToken, path+"/token", 403)
	mint(e, "wrong", path+"/token", 401)
	mint(none, workertest.DefaultToken, path+"/token", 404)
	for _, s := range []string{"59", "86401", "x", "-1"} {
		mint(e, workertest.DefaultToken, path+"/token?expires_in_s="+s, 400)
	}

	of := tokens.HashOf(workertest.DefaultToken)
	id, err := events.SessionID(name)
	if err != nil {
		t.Fatal(err)
	}
	a := events.Address{Tenant: "default", Session: id}
	use(e, tokens.Sign([]byte(secret), of, a, time.Now().Add(-time.Second)), minted.Path, 401)
	use(e, tokens.Sign([]byte(secret), tokens.HashOf(workertest.AcmeToken), a, time.Now().Add(time.Hour)), minted.Path, 401)
	use(e, tokens.Sign([]byte(secret), tokens.HashOf(workertest.ExpiredToken), a, time.Now().Add(time.Hour)), minted.Path, 401)
	e.WriteTokens(workertest.TokenLine(workertest.AcmeToken, "acme agent"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	use(e, minted.Token, minted.Path, 401)

	short := agents.Config{Listen: "127.0.0.1:-1", Tokens: e.Tokens, SigningKey: file("short", "short"), Service: r.Worker.Service()}
	if _, err := agents.New(short); err == nil || !strings.Contains(err.Error(), "less than 32 bytes") {
		t.Errorf("a short key: %v", err)
	}
}
