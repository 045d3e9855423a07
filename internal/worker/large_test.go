package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// bigTurn is turn n of a session with a window of that many tokens: one exchange
// with a text of so many bytes.
func bigTurn(n, window, bytes int) []byte {
	return fmt.Appendf(nil, `{"v":1,"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":%d,"max_output_tokens":1000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":"ok"}]}`,
		n, window, strings.Repeat("lorem ipsum ", bytes/12))
}

// compactions reads the session.compacted of one session.
func (w *world) compactions(session string) []events.Compacted {
	w.t.Helper()
	var out []events.Compacted
	for p, all := range w.toldBySession() {
		for _, o := range all {
			at, err := events.ParseOutcome(o.subject)
			if err != nil {
				w.t.Fatal(err)
			}
			if p.address.Session != session || at.Kind != events.KindCompacted {
				continue
			}
			var c events.Compacted
			if err := events.Unmarshal([]byte(o.data), &c); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, c)
		}
	}
	return out
}

// A history of more than 6 MiB is told without its messages, and the session
// goes on; a smaller one beside it is told whole.
func TestMessagesOmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 44; n++ {
		w.publish(events.KindTurn, "large", bigTurn(n, 3_400_000, 550_000))
		w.publish(events.KindTurn, "small", bigTurn(n, 10_000, 4_700))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantOmitted("large", true)
	w.wantOmitted("small", false)
	w.wantAsLogSays()
}

// clearedTurns are turns that end with a compaction which clears n tool results:
// besides its messages it has an edit for each.
func clearedTurns(n int) [][]byte {
	const perTurn = 200
	var out [][]byte
	for from := 0; from < n; from += perTurn {
		var b strings.Builder
		policy := `{"enabled":false}`
		if from+perTurn >= n {
			policy = `{"prune":{"protect_tokens":0,"minimum_tokens":0},"truncate":{"enabled":false}}`
		}
		fmt.Fprintf(&b, `{"turn":%d,"policy":%s,"model":{"context_window":20000},"messages":[{"role":"user","content":"go on"},`, from/perTurn+1, policy)
		for i := range min(perTurn, n-from) {
			fmt.Fprintf(&b, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c%d","content":%q},`,
				from+i, from+i, strings.Repeat("result ", 60))
		}
		b.WriteString(`{"role":"assistant","content":"done"}]}`)
		out = append(out, []byte(b.String()))
	}
	return out
}

// A history that the server would not take is told without its messages too;
// edits count, which may be many.
func TestMaxPayload(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 256 << 10}, topology.Config{Partitions: 4})
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 16; n++ {
		w.publish(events.KindTurn, "large", bigTurn(n, 200_000, 100_000))
		w.publish(events.KindTurn, "small", bigTurn(n, 10_000, 6_000))
	}
	for n := 850; n <= 1350; n += 50 { // from 225 KiB to 335 KiB, a sixth of it edits
		for _, data := range clearedTurns(n) {
			w.publish(events.KindTurn, fmt.Sprintf("cleared%d", n), data)
		}
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantOmitted("large", true)
	w.wantOmitted("small", false)
	whole := 0
	for n := 850; n <= 1350; n += 50 {
		all := w.compactions(fmt.Sprintf("cleared%d", n))
		if len(all) != 1 || len(all[0].Edits) != n {
			t.Errorf("%d results: %d compactions", n, len(all))
			continue
		}
		if !all[0].MessagesOmitted {
			whole++
		}
	}
	if whole == 0 || whole == 11 {
		t.Errorf("%d of 11 histories around the limit were told whole: the limit was not tried", whole)
	}
	w.wantAsLogSays()
}

func (w *world) wantOmitted(session string, omitted bool) {
	w.t.Helper()
	all := w.compactions(session)
	if len(all) < 2 {
		w.t.Errorf("%s: %d compactions, want more", session, len(all))
	}
	for _, c := range all {
		if c.MessagesOmitted != omitted || (len(c.Messages) == 0) != omitted {
			w.t.Errorf("%s: generation %d has %d messages, omitted %v; want omitted %v", session, c.Generation, len(c.Messages), c.MessagesOmitted, omitted)
		}
	}
}

// unwieldyTurn is a turn with thousands of messages that need an edit each once
// the policy lets the session be compacted.
func unwieldyTurn(n int, policy string) []byte {
	orphans := strings.Repeat(`{"role":"tool","tool_call_id":"a","content":"x"},`, 15_000)
	clearable := `{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"` + strings.Repeat("result ", 100) + `"},`
	return fmt.Appendf(nil, `{"turn":%d,"policy":%s,"model":{"context_window":100000},"messages":[%s%s{"role":"assistant","content":"done"}]}`, n, policy, clearable, orphans)
}

// A compaction whose edits alone are more than a server takes resets its own
// session and stops nobody. Without that bound the worker would end, and end
// again with every start.
func TestTooManyEdits(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 1})
	r := w.start("a", worker.Listener{})
	for n, policy := range []string{`{"enabled":false}`, `{"prune":{"protect_tokens":0,"minimum_tokens":0},"truncate":{"enabled":false}}`} {
		w.publish(events.KindTurn, "hostile", unwieldyTurn(n+1, policy))
		w.publish(events.KindTurn, "good", bigTurn(n+1, 10_000, 12_000))
	}
	w.publish(events.KindTurn, "hostile", []byte(`{"turn":3,"messages":[]}`))
	w.publish(events.KindTurn, "hostile", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	for n := 3; n <= 8; n++ {
		w.publish(events.KindTurn, "good", bigTurn(n, 10_000, 12_000))
	}
	settled := make(chan error, 1)
	go func() { settled <- w.settled(t.Context()) }()
	select {
	case err := <-r.done:
		t.Fatalf("the worker ended: %v", err)
	case err := <-settled:
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantOmitted("good", false)
	var told []string
	for _, o := range w.toldBySession()[place{partition: 0, address: events.Address{Tenant: events.DefaultTenant, Session: "hostile"}}] {
		var body events.Rejected
		if err := events.Unmarshal([]byte(o.data), &body); err != nil {
			t.Fatal(err)
		}
		if body.Code == "" {
			continue // a change of level
		}
		told = append(told, fmt.Sprintf("%s %d", body.Code, body.Expected))
	}
	if want := []string{"session_reset 0", "turn_gap 1"}; !slices.Equal(told, want) {
		t.Errorf("the hostile session was told %q, not %q", told, want)
	}
	w.wantAsLogSays()
}
