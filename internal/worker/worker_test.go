package worker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A session that outgrows its window is compacted again and again, across a restart of the
// worker. The stored outcomes are those that follow from the log alone.
func TestCompacts(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	sub, err := env.Connect().SubscribeSync(events.Published(events.KindCompacted, events.Address{Tenant: "default", Session: "*"}))
	if err != nil {
		t.Fatal(err)
	}
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for n := 21; n <= 30; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	stop = env.Run("b", observe.Listener{})
	env.AwaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stored := env.Stored()
	env.WantRedecided()
	compactions := 0
	for subject, payloads := range stored {
		at, err := events.ParseOutcome(subject)
		if err != nil {
			t.Fatal(err)
		}
		if at.Kind != events.KindCompacted {
			continue
		}
		for _, b := range payloads {
			compactions++
			m, err := sub.NextMsg(workertest.WaitLimit)
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Data) != b {
				t.Error("an agent received another payload than the stored one")
			}
			var c events.Compacted
			if err := events.Unmarshal(m.Data, &c); err != nil {
				t.Fatal(err)
			}
			if v := validate.Messages(c.Format, c.Messages); len(v) > 0 {
				t.Errorf("generation %d: %v", c.Generation, v)
			}
		}
	}
	if compactions < 2 {
		t.Errorf("%d compactions in 30 turns of 1,000 tokens in a window of 16,000", compactions)
	}
}

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
	env.Config = workertest.NewConfig(t, compaction.DefaultPolicy())
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
