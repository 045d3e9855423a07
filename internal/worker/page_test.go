package worker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// The two turns of testdata/compacted_page.jsonl have the answer of session.compacted in
// docs/format/wire.md, but for the hash of the config.
func TestCompactedPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## session.compacted\n")
	block := regexp.MustCompile("(?s)```\n(.*?)```").FindStringSubmatch(section)
	turns, err := os.ReadFile(filepath.Join("testdata", "compacted_page.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, policy.Default())
	stop := env.Run("a", observe.Listener{})
	for turn := range bytes.Lines(turns) {
		env.Publish(events.KindTurn, "w1", turn)
	}
	env.AwaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var got []any
	for subject, payloads := range env.Stored() {
		if at, err := events.ParseOutcome(subject); err == nil && at.Kind == events.KindCompacted {
			got = append(got, jsonValues(t, []byte(strings.Join(payloads, "\n")))...)
		}
	}
	want := jsonValues(t, []byte(strings.NewReplacer("{…}", "{}", ",…", "", "\n  …", `"…",`).Replace(block[1])))
	if len(got) != 1 || len(want) != 1 {
		t.Fatalf("%d answers of %d: %v", len(got), len(want), got)
	}
	shown, stored := want[0].(map[string]any), got[0].(map[string]any)
	delete(shown, "config")
	messages, all := shown["messages"].([]any), stored["messages"].([]any)
	for i, m := range messages {
		if m == "…" { // the middle is cut
			stored["messages"] = append(append(all[:i:i], m), all[len(all)-(len(messages)-i-1):]...)
		}
	}
	wantLike(t, "compacted", shown, stored)
}
