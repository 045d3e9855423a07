package events

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/weigh"
	"compactd/internal/testkit/dialecttest"
)

// decodesAlike checks that a turn is decoded in one pass as it is in steps: the same turn,
// or the same problems, whatever the dialect of its session.
func decodesAlike(t *testing.T, data []byte) {
	t.Helper()
	var one, steps Decoder
	for _, session := range append(Formats(), "") {
		want, wantErr := steps.inSteps(codec.Clean(data), session)
		got, err := one.Turn(data, session)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%q: %v, in steps %v", data, err, wantErr)
		}
		if err != nil {
			continue
		}
		if d := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
			t.Fatalf("%q: (-in steps +in one pass)\n%s", data, d)
		}
		sameContents(t, data, got)
	}
}

// sameContents compares messages that were scanned with the same messages as they are
// read.
func sameContents(t *testing.T, data []byte, got *Scanned) {
	t.Helper()
	turn, err := DecodeTurn(data)
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := got.Dialect.ReadAll(turn.Messages)
	if err != nil || len(msgs) != len(got.Contents) {
		t.Fatalf("%q: %d messages, want %d, %v", data, len(got.Contents), len(msgs), err)
	}
	for i := range msgs {
		m, x := &msgs[i], &got.Contents[i]
		if m.Role != x.Role || m.Hidden != x.Hidden || len(m.Parts) != len(x.Parts) {
			t.Fatalf("%q: message %d is %+v, want %+v", data, i, x, m)
		}
		for k := range m.Parts {
			samePart(t, &m.Parts[k], &x.Parts[k])
		}
	}
}

func samePart(t *testing.T, p, x *dialect.Part) {
	t.Helper()
	if x.Quoted != nil && x.Size != weigh.Text(p.Text) {
		t.Fatalf("%s: measured as %+v, want %+v", x.Quoted, x.Size, weigh.Text(p.Text))
	}
	if p.Content() != x.Content() || p.Blank() != x.Blank() || p.CallKey() != x.CallKey() {
		t.Fatalf("scanned as %+v, read as %+v", x, p)
	}
	y := *x
	y.Text, y.Quoted, y.Size, y.Call, y.CallID = p.Text, nil, weigh.Size{}, 0, p.CallID
	if d := cmp.Diff(*p, y, elsewhere); d != "" {
		t.Fatalf("(-read +scanned)\n%s", d)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	for _, s := range oddTurns {
		f.Add([]byte(s))
	}
	f.Fuzz(decodesAlike)
}

// oddTurns are turns that one pass does not take, or barely does.
var oddTurns = []string{
	``, `{}`, `[]`, `{"messages":[]}`, `{"messages":{}}`, `{"messages":null}`, `{"messages":[],"messages":[]}`, `{"messages":["x"]}`, `{"messages":[{}]} {}`,
	`{"messages":[],"format":"anthropic"}`, `{"format":"none","messages":[]}`, `{"format":7,"messages":[]}`, `{"v":2,"messages":[]}`, `{"v":3,"messages":[]}`,
	`{"v":2,"expect":{"turn":7,"digest":"000102030405060708090a0b0c0d0e0f"},"forked_from":{"session":"s","turn":3},"messages":[]}`, `{"v":2,"expect":{},"messages":[]}`,
	`{"v":1,"expect":{},"forked_from":7,"messages":[]}`, `{"v":2,"expect":null,"forked_from":null,"messages":[]}`, `{"v":2,"forked_from":[],"messages":[]}`, `{"v":"1","messages":[]}`,
	`{"messages":[{"role":"user","content":"\ud83d"}]}`, "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", `{"x":"\udc00","messages":[]}`,
	`{"model":{"provider":"anthropic","max_output_tokens":0},"messages":[]}`, `{"model":{"provider":"anthropic","provider":"x"},"messages":[]}`, `{"model":[],"messages":[]}`,
	`{"messages":[{"role":"user","content":[]}],"model":{"provider":"anthropic"}}`, `{"model":{"provider":"anthropic"},"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
	`{"turn":3,"replaces_from":2,"messages":[]}`, `{"turn":2,"replaces_from":2,"id":"x","messages":[]}`, `{"turn":0,"messages":[]}`, `{"id":"\u0000","messages":[]}`,
	`{"usage":{"input_tokens":1,"input_tokens":2},"messages":[]}`, `{"usage":{"input_tokens":0},"messages":[]}`, `{"usage":{"input_tokens":-1},"messages":[]}`,
	`{"usage":[],"messages":[]}`, `{"usage":{},"messages":[]}`,
	`{"usage":{"prompt_tokens":9,"completion_tokens":1},"messages":[]}`, `{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3}},"messages":[]}`,
	`{"a":1,"a":2,"messages":[]}`, `{"system":7,"messages":[]}`, `{"system":null,"tools":[],"policy":{},"messages":[]}`, `{"tools":{},"messages":[]}`, `{"policy":[],"messages":[]}`,
	`{"format":"anthropic","messages":[{"role":"assistant","content":[{"type":"tool_use","name":"read","input":{}}]}]}`,
	`{"format":"anthropic","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",` +
		`"content":[{"type":"text","text":"x"},{"type":"image","source":{"data":"aGk="}},7]},{"type":"image"},` +
		`{"type":"text","text":" "}]}]}`,
	`{"format":"openai","messages":[{"role":"tool","content":"x"}]}`,
	`{"format":"openai","messages":[{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{\"a\":1}"},` +
		`"tool_calls":[{"id":"1","function":{"name":"g","arguments":"not json"}}]}]}`,
	`{"format":"neurolink","messages":[{"role":"tool_call",` +
		`"content":"c","tool":"edit","metadata":{"toolCallId":"x"},"args":{"file":"a.go"}},{"role":"user",` +
		`"content":"h","condenseParent":"p"},{"role":"tool_result",` +
		`"content":{"a":1},"result":{"success":false}}]}`,
	`{"messages":[` + strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth) + `]}`,
}

// A turn is decoded in one pass as it is in steps.
func TestDecoder(t *testing.T) {
	for _, data := range fixtures(t) {
		decodesAlike(t, data)
	}
	for _, s := range oddTurns {
		decodesAlike(t, []byte(s))
	}
}

// A turn is decoded in one pass, without memory but for the id of the event.
func TestOnePass(t *testing.T) {
	var d Decoder
	if !d.onePass(agentTurn, "") {
		t.Fatal("an ordinary turn takes steps")
	}
	if n := testing.AllocsPerRun(100, func() { d.onePass(agentTurn, Anthropic) }); n > 1 {
		t.Errorf("%.0f allocations", n)
	}
}

// A decoder's memory of one turn does not show in the next.
func TestDecoderReused(t *testing.T) {
	var d Decoder
	var list [][]byte
	for _, data := range fixtures(t) {
		list = append(list, data)
	}
	for _, s := range oddTurns {
		list = append(list, []byte(s))
	}
	for i, first := range list {
		for _, second := range list[i:] {
			_, _ = d.Turn(first, Anthropic)
			got, err := d.Turn(second, Anthropic)
			want, wantErr := new(Decoder).Turn(second, Anthropic)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%q after %q: %v, alone %v", second, first, err, wantErr)
			}
			if err == nil && (got.Digest != want.Digest || got.Settings != want.Settings || !cmp.Equal(got.Usage, want.Usage) || !cmp.Equal(got.Model, want.Model)) {
				t.Fatalf("%q after %q is another turn", second, first)
			}
		}
	}
}

// A turn in each dialect is decoded in one pass as it is in steps.
func TestDecodeDialects(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for _, f := range Formats() {
		msgs := all[string(f)]
		decodesAlike(t, codec.WriteObject([]codec.Member{{Name: "format", Value: codec.Quote(string(f))}, {Name: "messages", Value: codec.WriteArray(msgs)}}))
	}
}
