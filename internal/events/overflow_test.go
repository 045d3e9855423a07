package events

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
)

func TestOverflowFixtures(t *testing.T) {
	claude := &Model{Provider: "anthropic", Name: "claude-sonnet-4-20250514"}
	all := fixtures(t)
	for name, want := range map[string]Overflow{
		"overflow":         {ID: "01980f3c-6c1e-7b7e-9d5a-3f1f0b7a2c19", Status: 400, Model: claude, Generation: -1},
		"overflow-text":    {ID: "01980f3c-6c1e-7b7e-9d5a-3f1f0b7a2c20", Generation: 3},
		"overflow-array":   {Status: 400, Model: &Model{Provider: "google", Name: "gemini-2.5-pro"}, Generation: -1},
		"overflow-no-body": {Status: 413, Generation: -1},
	} {
		got, err := DecodeOverflow(all[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (got.Error == nil) != (name == "overflow-no-body") {
			t.Errorf("%s: error is %s", name, got.Error)
		}
		got.Error = nil
		if d := gocmp.Diff(want, *got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// The envelope is strict; what the provider answered passes as it is.
func TestDecodeOverflow(t *testing.T) {
	for payload, want := range map[string][]Code{
		`{}`:                                   {CodeMissingField},
		`{"error":null}`:                       {CodeMissingField},
		`{"error":"x"} {}`:                     {CodeTrailingData},
		`{"error":"x"`:                         {CodeBadJSON},
		`{"error":"x","error":"y"}`:            {CodeDuplicateKey},
		`{"error":7}`:                          {CodeBadType},
		`{"error":true,"status":"400"}`:        {CodeBadType, CodeBadType},
		`{"error":"x","status":99}`:            {CodeOutOfRange},
		`{"error":"x","status":600}`:           {CodeOutOfRange},
		`{"error":"x","v":2}`:                  {CodeBadVersion},
		`{"error":"x","id":"a\u0000"}`:         {CodeBadType},
		`{"error":"x","model":[]}`:             {CodeBadType},
		`{"error":"x","model":{"provider":1}}`: {CodeBadType},
		`{"error":"` + strings.Repeat("x", MaxOverflowBytes) + `"}`:               {CodeTooLarge},
		`{"error":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`:   {CodeBadJSON},
		`{"error":"x","generation":-1}`:                                           {CodeOutOfRange},
		`{"error":"x","other":{}}`:                                                nil,
		`{"error":""}`:                                                            nil,
		`{"error":{"message":"a","message":"b","x":1e999},"status":null}`:         nil,
		`{"error":"\ud83d","model":{"name":"m","max_output_tokens":5},"id":null}`: nil,
	} {
		_, err := DecodeOverflow([]byte(payload))
		if d := gocmp.Diff(want, codes(err)); d != "" {
			t.Errorf("%.80s: %s", payload, d)
		}
	}
	o, err := DecodeOverflow([]byte(`{"error":{"message":"a","message":"\ud83d"}}`))
	if err != nil || string(o.Error) != `{"message":"a","message":"\ufffd"}` {
		t.Errorf("got %s, %v", o.Error, err)
	}
}

func FuzzDecodeOverflow(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := DecodeOverflow(data)
		if err != nil {
			if codes(err) == nil {
				t.Fatalf("%v is no *Invalid", err)
			}
			return
		}
		if o.Error != nil && codec.Check(o.Error) != nil {
			t.Fatalf("error is %s", o.Error)
		}
		if o.Error == nil && o.Status == 0 {
			t.Fatal("neither error nor status")
		}
	})
}
