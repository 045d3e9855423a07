package clients

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"compactd/examples/agenttest"
)

// The official MCP client for TypeScript lists the tools and resources of a session, uses each,
// and is refused with a wrong token and at the session of another token.
func TestMCPClient(t *testing.T) {
	if lacks := mcpLacks(t); lacks != "" {
		if needed("typescript") {
			t.Fatal(lacks)
		}
		fmt.Printf("\n** THE MCP CLIENT WAS NOT RUN: %s\n\n", lacks)
		t.Skip("SKIPPED: " + lacks)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	line := func(token, rest string) string { return fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(token)), rest) }
	must(t, os.WriteFile(tokens, []byte(line("agent-token", "default agent")+line("token-1", "default/s1 session")+line("token-2", "default/s2 session")), 0o600))
	_, addr := agenttest.WithEdge(t, tokens)
	for n := 1; n <= 12; n++ {
		post(t, "http://"+addr+"/v1/sessions/default/s1/turns", fmt.Sprintf(
			`{"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":"done"}]}`,
			n, strings.Repeat(fmt.Sprintf("word %d ", n), 200)))
	}
	mcp := func(token, session string) (out struct {
		Refused   any
		Tools     map[string]string
		Resources map[string]string
		Templates []string
		Wrong     string
		Messages  int
	},
	) {
		t.Helper()
		printed := run(t, []string{"node", "../../clients/mcp/client.mjs"}, "ENDPOINT=http://"+addr+"/mcp/default/"+session, "TOKEN="+token)
		if err := json.Unmarshal([]byte(printed), &out); err != nil {
			t.Fatalf("it printed %q: %v", printed, err)
		}
		return out
	}
	got := mcp("token-1", "s1")
	for tool, want := range map[string]string{
		"recall": "[turn 1, message 0, user]\nword 1", "search_history": "turn 2, message 0, user: word 2", "what_was_dropped": "generation",
		"context_stats": "turns: 12", "files": "No files.", "compact_now": "ompact",
	} {
		if !strings.Contains(got.Tools[tool], want) || strings.HasPrefix(got.Tools[tool], "ERROR") {
			t.Errorf("%s returned %q, want %q", tool, got.Tools[tool], want)
		}
	}
	if len(got.Tools) != 6 || !strings.HasPrefix(got.Wrong, "unknown_turn") || len(got.Resources) != 2 || got.Messages != 24 ||
		!slices.Equal(got.Templates, []string{"compactd://session/generation/{n}{?page}"}) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		token, session string
		want           float64
	}{{"wrong", "s1", 401}, {"agent-token", "s1", 403}, {"token-2", "s1", 403}, {"token-1", "s2", 403}} {
		if got := mcp(c.token, c.session); got.Refused != c.want {
			t.Errorf("%s at %s: %v, want %v", c.token, c.session, got.Refused, c.want)
		}
	}
}

// mcpLacks is what this machine lacks to run the client.
func mcpLacks(t *testing.T) string {
	if exec.CommandContext(t.Context(), "node", "--version").Run() != nil {
		return "it needs node 18 or newer, and npm"
	}
	if _, err := os.Stat("../../clients/mcp/node_modules/@modelcontextprotocol/sdk"); err != nil {
		return "its packages are not installed: npm ci --prefix clients/mcp"
	}
	return ""
}

func post(t *testing.T, url, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer agent-token")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, resp.Status)
	}
}
