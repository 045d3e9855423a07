package stored_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/stored"
)

var address = events.Address{Tenant: "t", Session: "s"}

// ledger is one of two turns.
func ledger(t *testing.T) *compaction.Ledger {
	t.Helper()
	c := config(t)
	l := compaction.NewLedger(address)
	for n := range measure.Seq(2) {
		data := fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-5"},"messages":[{"role":"user","content":"Hello"}]}`, n, n+1)
		turn, messages, err := stored.ReadTurn(c, l, data, n+1)
		if err != nil || len(messages) != 1 {
			t.Fatal(len(messages), err)
		}
		turn.Time = int64(n+1) * 1000
		_, next := compaction.Decide(l, turn, c)
		next.Install(l)
	}
	return l
}

func config(t *testing.T) *compaction.Config {
	t.Helper()
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The rows of a ledger are read to a ledger that is written to the same bytes.
func TestLedger(t *testing.T) {
	rows, err := stored.Rows(ledger(t))
	if err != nil || len(rows) != 3 {
		t.Fatal(len(rows), err)
	}
	l, err := stored.ReadLedger(address, rows)
	if err != nil || l.LastTurn() != 2 {
		t.Fatal(l, err)
	}
	again, err := stored.Rows(l)
	if err != nil || !reflect.DeepEqual(again, rows) {
		t.Errorf("rows %q, %v, want %q", again, err, rows)
	}
	if at, err := stored.LastTurnAt(rows); at != 2000 || err != nil {
		t.Errorf("last turn at %d, %v", at, err)
	}
	if handled, err := stored.IdleHandled(rows); handled || err != nil {
		t.Errorf("idle handled %v, %v", handled, err)
	}
}

// A damaged ledger is an error, whichever row of it is.
func TestDamagedLedger(t *testing.T) {
	rows, err := stored.Rows(ledger(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		without := slices.Delete(slices.Clone(rows), i, i+1)
		if _, err := stored.ReadLedger(address, without); err == nil {
			t.Errorf("without row %s: no error", r.Name)
		}
		damaged := slices.Clone(rows)
		damaged[i].Data = r.Data[:len(r.Data)-1]
		if _, err := stored.ReadLedger(address, damaged); err == nil {
			t.Errorf("with a short row %s: no error", r.Name)
		}
	}
	if _, err := stored.LastTurnAt(rows[1:]); err == nil {
		t.Error("last turn without a header: no error")
	}
	if _, err := stored.IdleHandled(rows[1:]); err == nil {
		t.Error("idle without a header: no error")
	}
}

func TestConfig(t *testing.T) {
	want := config(t)
	got, err := stored.ConfigReader()(want.Text())
	if err != nil || got.Hash() != want.Hash() {
		t.Fatal(got, err)
	}
	for name, change := range map[string][2]string{
		"other rules":      {fmt.Sprintf(`"rules":%d`, compaction.RulesVersion), `"rules":0`},
		"other counter":    {`"counter":"estimate"`, `"counter":"unknown"`},
		"unknown field":    {`"rules":`, `"more":1,"rules":`},
		"policy not valid": {`"threshold":0.8`, `"threshold":0`},
	} {
		text := strings.Replace(string(want.Text()), change[0], change[1], 1)
		if text == string(want.Text()) {
			t.Fatalf("%s: %s is not in the text", name, change[0])
		}
		if _, err := stored.ReadConfig([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Requests of all kinds are read, and what is malformed is an error with a code.
func TestRequest(t *testing.T) {
	for kind, payload := range map[events.Kind]string{
		events.KindCompact:  `{"v":1,"id":"r"}`,
		events.KindRewind:   `{"v":1,"id":"r","generation":0}`,
		events.KindIdle:     `{"v":1,"id":"r","since":1}`,
		events.KindEnd:      `{"v":1,"id":"r"}`,
		events.KindForget:   `{"v":1,"id":"r"}`,
		events.KindOverflow: `{"v":1,"id":"r","error":{"message":"prompt is too long: 219898 tokens > 200000 maximum"}}`,
	} {
		r, err := stored.ReadRequest(kind, []byte(payload), 3)
		if err != nil || r.Seq != 3 || r.ID != "r" {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
		var invalid *events.Invalid
		if _, err := stored.ReadRequest(kind, []byte(`{"v":1,`), 3); !errors.As(err, &invalid) {
			t.Errorf("%s: error %v, want an events.Invalid", kind, err)
		}
	}
	if _, err := stored.ReadRequest("other", []byte(`{"v":1}`), 3); events.CodeOf(err) != events.CodeUnsupportedKind {
		t.Errorf("error %v", err)
	}
}
