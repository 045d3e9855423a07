package compaction_test

import (
	stdcmp "cmp"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// sameMeasured compares what a payload measures without its texts with what it does
// with them.
func sameMeasured(t fataler, c *compaction.Config, l *compaction.Ledger, data []byte, seq measure.Seq) {
	scanned, merr := new(events.Decoder).Turn(data, l.Format())
	read, err := decodeInSteps(data, l.Format())
	if err != nil || merr != nil {
		if err == nil || merr == nil || err.Error() != merr.Error() {
			t.Fatalf("%s: %v, %v", data, err, merr)
		}
		return
	}
	read.Digest, read.Settings, read.SystemKey, read.ToolsKey = scanned.Digest, scanned.Settings, scanned.SystemKey, scanned.ToolsKey
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if d := cmp.Diff(c.Turn(l, read, seq), c.Turn(l, scanned, seq), all); d != "" {
		t.Fatalf("%s: (-read +scanned)\n%s", data, d)
	}
}

// decodeInSteps decodes a turn and then reads its messages, with their texts.
func decodeInSteps(data []byte, session events.Format) (*events.Scanned, error) {
	turn, err := events.DecodeTurn(data)
	if err != nil {
		return nil, err
	}
	read := &events.Scanned{Turn: *turn, Dialect: turn.Format}
	read.Dialect = stdcmp.Or(read.Dialect, session, events.DefaultFormat(turn.Model))
	if read.Contents, err = read.Dialect.ReadAll(turn.Messages); err != nil {
		return nil, err
	}
	read.Fault = read.Dialect.Complete(read.Contents)
	return read, nil
}

// A3: a worker measures a text where it stands in the payload, whatever is escaped
// in it and whatever it is part of, as it measures the text itself. With a counter it
// counts the text itself.
func TestMeasureTurn(t *testing.T) {
	pieces := []string{`a`, `Z9`, ` `, `\n`, `\t`, `\"`, `\\`, `\/`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\u2028`, `é`, `数`, `👍`, `{"x":[1]}`, `.`}
	for i, p := range pieces {
		pieces[i] = strings.ReplaceAll(p, `{"x":[1]}`, `{\"x\":[1]}`)
	}
	shapes := map[events.Format][]string{
		events.Anthropic: {
			`{"role":"user","content":"T"}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"s"},{"type":"text","text":"T"},{"type":"tool_use","id":"c","name":"read_file","input":{"path":"T"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"T"},{"type":"text","text":"T"}]}`,
			`{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"T"},{"type":"image"},{"type":"text","text":"T"},{"x":"T"}]},{"y":"T"}]}`,
			`{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"Read file T"}]},{"type":"text","text":7}]}`,
		},
		events.OpenAI: {
			`{"role":"user","content":"T"}`,
			`{"role":"assistant","content":[{"type":"text","text":"T"},{"type":"refusal","refusal":"T"}],"tool_calls":[{"id":"c","function":{"name":"bash","arguments":"T"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"T"}`,
			`{"role":"tool","content":[{"type":"text","text":"T"},{"type":"text","text":"T"}]}`,
		},
		events.NeuroLink: {
			`{"role":"user","content":"T"}`, `{"role":"tool_call","content":"T","tool":"edit","args":{"file":"T"}}`,
			`{"role":"tool_result","content":"T","tool":"edit"}`, `{"role":"assistant","content":[{"x":"T"}]}`,
		},
	}
	shapes[events.Responses] = []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"T"},{"type":"input_image","image_url":"T"}]}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"T"}],"encrypted_content":"T"}`,
		`{"type":"function_call","call_id":"c","name":"bash","arguments":"T"}`, `{"type":"function_call_output","call_id":"c","output":"T"}`,
		`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"T"}]}`, `{"type":"web_search_call","action":{"query":"T"}}`,
	}
	shapes[events.Gemini] = []string{
		`{"role":"user","parts":[{"text":"T"},{"inlineData":{"data":"T"}}]}`,
		`{"role":"model","parts":[{"text":"T","thought":true},{"text":"T","thoughtSignature":"s"},{"functionCall":{"name":"bash","args":{"command":"T"}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"T"}}},{"functionResponse":{"name":"bash","response":{"output":"T","a":1}}}]}`,
	}
	shapes[events.Bedrock] = []string{
		`{"role":"user","content":[{"text":"T"},{"cachePoint":{"type":"default"}}]}`,
		`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"T","signature":"T"}}},{"toolUse":{"toolUseId":"c","name":"bash","input":{"command":"T"}}}]}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"T"},{"json":{"a":"T"}},{"image":{"source":{"bytes":"T"}}}]}}]}`,
	}
	shapes[events.AISDK] = []string{
		`{"role":"user","content":"T"}`, `{"role":"user","content":[{"type":"text","text":"T"},{"type":"file","data":"T"}]}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"T"},{"type":"tool-call","toolCallId":"c","toolName":"bash","input":{"command":"T"}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"bash",` +
			`"output":{"type":"text","value":"T"}},{"type":"tool-result","toolCallId":"d","toolName":"bash",` +
			`"output":{"type":"json","value":{"a":"T"}}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"bash","output":{"type":"content","value":[{"type":"text","text":"T"},{"type":"text","text":"T"}]}}]}`,
	}
	counted, err := defaultConfig(t).WithCounter(everyByte{})
	if err != nil {
		t.Fatal(err)
	}
	configs := []*compaction.Config{defaultConfig(t), counted}
	rapid.Check(t, func(rt *rapid.T) {
		format := rapid.SampledFrom(events.Formats()).Draw(rt, "format")
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8), func(s []string) string { return strings.Join(s, "") })
		var raw []string
		for _, shape := range rapid.SliceOfN(rapid.SampledFrom(shapes[format]), 0, 3).Draw(rt, "shapes") {
			for strings.Contains(shape, `T`) {
				shape = strings.Replace(shape, `T`, text.Draw(rt, "text"), 1)
			}
			raw = append(raw, shape)
		}
		data := `{"format":"` + string(format) + `","messages":[` + strings.Join(raw, ",") + `]}`
		for _, c := range configs {
			sameMeasured(rt, c, compaction.NewLedger(events.Address{Tenant: "t", Session: "s"}), []byte(data), 1)
		}
	})
}
