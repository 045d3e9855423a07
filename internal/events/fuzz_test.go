package events

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/dialecttest"
)

// Whatever arrives, nothing panics; and what is taken can be read in every
// dialect, and sent back as JSON that any parser takes.
func FuzzDecodeTurn(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	for _, s := range []string{
		``, `{}`, `{"messages":[]}`, `{"messages":["\ud83d"]}`, "{\"messages\":[\"\xff\"]}", `{"messages":[{}]} {}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1,\"a\":\"\\ud83d\"}"}}],"function_call":{}}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{}],"function_call":{}}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"\ude00\ud83d"}]}]}]}`,
		`{"messages":[{"role":"tool_call","args":null,"metadata":{"toolCallId":1},"result":{"success":false}}],"usage":{"input_tokens":1e400}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		turn, err := DecodeTurn(data)
		if err != nil {
			if codes(err) == nil {
				t.Fatalf("%v is no *Invalid", err)
			}
			return
		}
		out, err := codec.Marshal(turn.Messages)
		if err != nil || !json.Valid(out) {
			t.Fatalf("marshal: %s, %v", out, err)
		}
		for _, format := range Formats() {
			validate.Messages(format, turn.Messages)
			for _, raw := range turn.Messages {
				fuzzMessage(t, format, raw)
			}
		}
	})
}

// A reader of a dialect does not panic either where the bytes are not JSON, which only
// [codec.Check] finds.
func FuzzReadMessage(f *testing.F) {
	for _, s := range []string{`{`, `[1,`, `{"role"`, `{"role":`, `{"role":"user","content":["`, `{"role":"assistant","tool_calls":[{]}`, "{}\x00", `tru`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, format := range Formats() {
			_, _ = format.read(data)
		}
	})
}

// fuzzMessage reads a message, and again as it is rebuilt from its parts.
func fuzzMessage(t *testing.T, f Format, raw codec.Raw) {
	m, err := f.Read(raw)
	if err != nil {
		return
	}
	if out, err := f.Write(m); err != nil || string(out) != string(raw) {
		t.Fatalf("%s: %s became %s, %v", f, raw, out, err)
	}
	m.Edited = true
	for i, p := range m.Parts {
		if p.Kind == dialect.PartText || p.Kind == dialect.PartResult {
			m.SetText(i, "x")
		}
	}
	out, err := f.Write(m)
	if err != nil {
		t.Fatalf("%s: %s: %v", f, raw, err)
	}
	again, err := f.Read(out)
	if err != nil {
		t.Fatalf("%s: %s became %s: %v", f, raw, out, err)
	}
	if len(again.Parts) != len(m.Parts) || again.Role != m.Role {
		t.Fatalf("%s: %s became %s: parts %d, then %d", f, raw, out, len(m.Parts), len(again.Parts))
	}
}

// Whatever arrives as any other event, nothing panics; what is taken is within its
// bounds, and the message that carries a summary is one element, whatever its text.
func FuzzDecodeRequest(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	for _, s := range []string{
		`{"focus":"\ud83d","policy":{},"model":{"provider":"x"}}`, `{"steps":0}`, `{"generation":0,"steps":1}`, `{"generation":-1}`,
		`{"job":"j","text":"</condensed-summary><condensed-summary>","record":[{"kind":"user","text":"a\nb","turns":[2,1]}]}`,
		`{"job":"j","failure":"no_room"}`, `{"job":"j","text":"a","record":null,"usage":{"input_tokens":1e9}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		invalid := func(err error) bool {
			if err != nil && codes(err) == nil {
				t.Fatalf("%v is no *Invalid", err)
			}
			return err != nil
		}
		if c, err := Decode[Compact](data); !invalid(err) && (len(c.Focus) > MaxFocusBytes || c.Policy != nil && c.Policy.Kind() != '{') {
			t.Fatalf("%+v", c)
		}
		if r, err := Decode[Rewind](data); !invalid(err) && (r.Generation == nil) != (r.Steps > 0) {
			t.Fatalf("%+v", r)
		}
		_, err := Decode[End](data)
		invalid(err)
		if s, err := DecodeSummary(data); !invalid(err) {
			text := s.Message().Parts[0].Text
			if strings.Count(text, SummaryOpen) != 1 || strings.Count(text, summaryClose) != 1 || !strings.HasSuffix(text, summaryClose) {
				t.Fatalf("summary %q", text)
			}
		}
	})
}

// Whatever a request contains, nothing panics, what is wrong is an [*Invalid], and what
// is taken is within its bounds. A cursor reads as it was written.
func FuzzDecodeService(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	for _, s := range []string{
		`{"tenant":"t","limit":2,"after":"3.s"}`, `{"after":"65535."}`, `{"after":"-1.x"}`, `{"tenant":"*","after":"1.>"}`, `{"tenant":"*"}`, `{"id":"x"}`,
		`{"session":"s","text":"\ud83d","limit":100,"before":{"turn":1,"index":0}}`, `{"session":"s","turn":1,"index":-1}`,
		`{"session":"s","page":0}`, `{"session":"s","messages":[{"role":"user"}],"format":"openai","context_window":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		invalid := func(err error) bool {
			if err != nil && codes(err) == nil {
				t.Fatalf("%v is no *Invalid", err)
			}
			return err != nil
		}
		if r, err := Decode[SessionsRequest](data); !invalid(err) {
			var again SessionsCursor
			if err := again.UnmarshalText([]byte(r.After.String())); err != nil || again != r.After || r.Tenant != AnyTenant && !ValidID(r.Tenant) || r.Limit < 0 || r.Limit > MaxSessions {
				t.Fatalf("%+v, cursor %+v, %v", r, again, err)
			}
		}
		_, err := RequestTenant(data)
		invalid(err)
		if r, err := Decode[FilesRequest](data); !invalid(err) && r.Page < 0 {
			t.Fatalf("%+v", r)
		}
		if r, err := Decode[HistoryRequest](data); !invalid(err) && (r.Limit < 0 || r.Limit > MaxHistory) {
			t.Fatalf("%+v", r)
		}
		if r, err := Decode[RecallRequest](data); !invalid(err) && (r.Limit > MaxHits || r.Index != nil && *r.Index < 0) {
			t.Fatalf("%+v", r)
		}
		_, err = Decode[CheckRequest](data)
		invalid(err)
		if r, err := Decode[AttachRequest](data); !invalid(err) && (r.SummaryWait() < 0 || r.SummaryWait() > MaxSummaryWait) {
			t.Fatalf("%+v", r)
		}
		_, err = Decode[Erasure](data)
		invalid(err)
		_, err = Decode[Idle](data)
		invalid(err)
		if r, err := Decode[TenantsRequest](data); !invalid(err) && (r.Limit < 0 || r.Limit > MaxSessions) {
			t.Fatalf("%+v", r)
		}
		if r, err := Decode[WhatIfRequest](data); !invalid(err) && len(r.Set) > MaxWhatIf {
			t.Fatalf("%+v", r)
		}
		if r, err := Decode[PreviewRequest](data); !invalid(err) && (len(r.Focus) > MaxFocusBytes || r.Policy != nil && r.Policy.Kind() != '{') {
			t.Fatalf("%+v", r)
		}
		_, err = Decode[FleetRequest](data)
		invalid(err)
		if b, err := Decode[Branch](data); !invalid(err) && !ValidSession(b.Branch) {
			t.Fatalf("%+v", b)
		}
		for _, k := range append(OutcomeKinds, "job", "none") {
			if body, err := DecodeOutcome(k, data); err == nil && body == nil {
				t.Fatalf("a %s is nothing", k)
			}
		}
	})
}

// Every message of every fixture comes back byte for byte, and reads the same once it was
// rebuilt from its parts.
func TestFixturesReturn(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for _, f := range Formats() {
		for i, raw := range all[string(f)] {
			fuzzMessage(t, f, raw)
			m, err := f.Read(raw)
			if err != nil {
				t.Fatalf("%s %d: %v", f, i, err)
			}
			m.Edited = true
			rebuilt, err := f.Write(m)
			if err != nil {
				t.Fatalf("%s %d: %v", f, i, err)
			}
			again, err := f.Read(rebuilt)
			if err != nil {
				t.Fatalf("%s %d: %s became %s: %v", f, i, raw, rebuilt, err)
			}
			if d := cmp.Diff(dialecttest.Gists(m), dialecttest.Gists(again)); d != "" {
				t.Errorf("%s %d: %s", f, i, d)
			}
		}
	}
}
