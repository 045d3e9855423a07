package compaction_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

// base is what a turn for the ledger as it is expects.
func base(l *compaction.Ledger) events.Expect {
	x := events.Expect{Turn: l.LastTurn()}
	if c := l.Chain(); len(c) > 0 {
		x.Digest = c[len(c)-1].Whole
	}
	return x
}

// synced is a turn of version 2.
func synced(t *testing.T, number string, x events.Expect, texts ...string) []byte {
	t.Helper()
	var messages []any
	for _, s := range texts {
		messages = append(messages, map[string]string{"role": "user", "content": s})
	}
	data, err := json.Marshal(map[string]any{"v": 2, "id": fmt.Sprint(texts), "expect": x, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(`{` + number + `,` + string(data[1:]))
}

// A turn that names its base is taken on that base and on no other, whatever came in between:
// another turn, a replacement, or one that left as many turns as there were.
func TestExpect(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	l := compaction.NewLedger(events.Address{Tenant: "default", Session: "s"})
	seq := measure.Seq(0)
	decide := func(data []byte) events.Code {
		t.Helper()
		seq++
		turn, _, err := stored.ReadTurn(new(compaction.Config), l, data, seq)
		if err != nil {
			t.Fatal(err)
		}
		outs, next := compaction.Decide(l, turn, config)
		next.Install(l)
		for _, o := range outs {
			if r, ok := o.Body.(*events.Rejected); ok {
				return r.Code
			}
		}
		return ""
	}
	want := func(code events.Code, data []byte) {
		t.Helper()
		if got := decide(data); got != code {
			t.Errorf("%s: %q, want %q", data, got, code)
		}
	}
	empty := base(l)
	want("", synced(t, `"turn":1`, empty, "one"))
	want(events.CodeStaleBase, synced(t, `"replaces_from":1`, empty, "other"))
	one := base(l)
	want("", synced(t, `"turn":2`, one, "two", "three"))
	want("", synced(t, `"turn":2`, one, "two", "three")) // sent twice
	want(events.CodeStaleBase, synced(t, `"turn":3`, one, "four"))
	two := base(l)
	if c := l.Chain(); len(c) != 2 || c[1].End != 3 || events.Start(c, 1) != 1 || c[1].Digest != events.OpenAI.DigestOf([]codec.Raw{
		codec.Raw(`{"role":"user", "content":"two"}`), codec.Raw(`{"content":"three","role":"user"}`),
	}) {
		t.Errorf("chain %+v", c)
	}
	want("", synced(t, `"replaces_from":2`, two, "another"))
	want(events.CodeStaleBase, synced(t, `"turn":3`, two, "four"))
	want("", []byte(`{"turn":3,"messages":[]}`))
	rows, err := stored.Rows(l)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := stored.ReadLedger(l.Address, rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Chain(), restored.Chain()); diff != "" {
		t.Error(diff)
	}
}

// A session that branched off remembers where, also in its rows.
func TestForkedFrom(t *testing.T) {
	l := compaction.NewLedger(events.Address{Tenant: "default", Session: "s"})
	turn, _, err := stored.ReadTurn(new(compaction.Config), l, []byte(`{"v":2,"forked_from":{"session":"parent","turn":3},"messages":[{"role":"user","content":"x"}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	compaction.Apply(l, turn, nil, config)
	rows, err := stored.Rows(l)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := stored.ReadLedger(l.Address, rows)
	if want := (events.Fork{Session: "parent", Turn: 3}); err != nil || l.ForkedFrom() == nil || restored.ForkedFrom().Fork != want || restored.ForkedFrom().Seq == 0 {
		t.Errorf("%v %v, %v", l.ForkedFrom(), restored.ForkedFrom(), err)
	}
}

// A ledger remembers the ends of its history that were retracted last, and its branches, also after
// it was stored. Awaited results of the last turns follow from their entries.
func TestLineages(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	l, seq := compaction.NewLedger(events.Address{Tenant: "default", Session: "s"}), measure.Seq(0)
	take := func(k events.Kind, data string) {
		t.Helper()
		seq++
		var in compaction.Input
		if k == events.KindTurn {
			in, _, err = stored.ReadTurn(config, l, []byte(data), seq)
		} else {
			in, err = stored.ReadRequest(k, []byte(data), seq)
		}
		if err != nil {
			t.Fatal(err)
		}
		if k == events.KindTurn && seq%2 == 0 {
			compaction.Apply(l, in, nil, config) // as it is replayed
			return
		}
		_, next := compaction.Decide(l, in, config)
		next.Install(l)
	}
	take(events.KindBranch, `{"branch":"early"}`) // it has no turns yet
	take(events.KindTurn, `{"messages":[{"role":"user","content":"one"}]}`)
	for i := range 20 {
		take(events.KindTurn, fmt.Sprintf(`{"turn":2,"replaces_from":2,"messages":[{"role":"user","content":"%d"},{"role":"user","content":"more"}]}`, i%12))
	}
	take(events.KindBranch, `{"branch":"s-2"}`)
	rows, err := stored.Rows(l)
	if err != nil {
		t.Fatal(err)
	}
	again, err := stored.ReadLedger(l.Address, rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Retracted(), again.Retracted()); diff != "" || again.Branched() != seq || !again.HasBranch("s-2") || again.HasBranch("early") {
		t.Errorf("stored and read again: %s", diff)
	}
	want := 0
	for i, r := range l.Retracted() {
		text := events.OpenAI.DigestOf([]codec.Raw{codec.Raw(fmt.Sprintf(`{"role":"user","content":"%d"}`, (11+i)%12)), codec.Raw(`{"role":"user","content":"more"}`)})
		if want++; r.Base != l.Chain()[0].Whole || r.Messages != 2 || r.First != text {
			t.Errorf("end %d: %+v", i, r)
		}
	}
	if want != 8 {
		t.Errorf("%d ends are remembered", want)
	}
	call := `{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"%[1]s1","type":"function","function":{"name":"read","arguments":"{}"}},` +
		`{"id":"%[1]s2","type":"function","function":{"name":"read","arguments":"{}"}}]}`
	take(events.KindTurn, fmt.Sprintf(`{"messages":[`+call+`]}`, "a"))
	take(events.KindTurn, `{"messages":[{"role":"tool","tool_call_id":"a1","content":"x"}]}`)
	take(events.KindTurn, `{"messages":[{"role":"tool","tool_call_id":"a2","content":"x"},{"role":"assistant","content":"Seen."}]}`)
	take(events.KindTurn, fmt.Sprintf(`{"messages":[`+call+`]}`, "b"))
	take(events.KindTurn, `{"messages":[{"role":"user","content":"Stop."}]}`)
	keyOf := dialect.CallKeyOf[string]
	for turn, awaited := range map[int64][]dialect.Key{2: nil, 3: {keyOf("a2"), keyOf("a1")}, 4: {keyOf("a2")}, 5: nil, 6: {keyOf("b2"), keyOf("b1")}, 7: nil} {
		if diff := cmp.Diff(awaited, l.AwaitedAfter(turn)); diff != "" {
			t.Errorf("after turn %d: %s", turn, diff)
		}
	}
}
