package events

import (
	"strings"
	"testing"

	"compactd/internal/events/codec"
)

// A message of no dialect is refused with its index, with its form and with
// the form to send; its text is never quoted, but for a role in letters.
func TestNoMessages(t *testing.T) {
	for _, test := range []struct {
		format        Format
		message, want string
	}{
		{Anthropic, `{"type":"text","text":"hi"}`, `messages[1] has no role (user, assistant); it looks like a block of a message: put blocks into content of a message with a role`},
		{Anthropic, `{"type":"user","message":{"role":"user","content":"hi"}}`, `messages[1] has no role (user, assistant); it looks like a line of a transcript: send its message`},
		{Anthropic, `{"role":"bot","content":"x"}`, `messages[1] has the role "bot", which is none of anthropic (user, assistant)`},
		{OpenAI, `{"role":"secret","content":"x"}`, `messages[1] has a role that is none of openai (system, developer, user, assistant, tool)`},
		{OpenAI, `{"role":7,"content":"x"}`, `messages[1] has a role that is no string (system, developer, user, assistant, tool)`},
		{OpenAI, `"hi"`, `messages[1] is not a JSON object; it is a string: put it into {"role":"user","content":…}`},
	} {
		_, err := test.format.ReadNew([]codec.Raw{codec.Raw(`{"role":"user","content":"a"}`), codec.Raw(test.message)})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.message, err, test.want)
		}
	}
}

// A call or result that cannot be paired is refused with its index. It stays readable:
// logs hold such messages.
func TestMissingCallIDs(t *testing.T) {
	for _, test := range []struct {
		format        Format
		message, want string
	}{
		{OpenAI, `{"role":"tool","content":"x"}`, "messages[1] is a tool's and has no tool_call_id"},
		{OpenAI, `{"role":"tool","tool_call_id":"","content":"x"}`, "messages[1] is a tool's and has no tool_call_id"},
		{OpenAI, `{"role":"tool","tool_call_id":7,"content":"x"}`, "messages[1] is a tool's and has no tool_call_id"},
		{OpenAI, `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]}`, "messages[1] has tool_calls without id"},
		{Anthropic, `{"role":"user","content":[{"type":"tool_result","content":"x"}]}`, "messages[1] has a tool_result without tool_use_id"},
		{Anthropic, `{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}`, "messages[1] has a tool_use without id"},
		{OpenAI, `{"role":"function","name":"f","content":"x"}`, ""},
		{OpenAI, `{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, ""},
		{NeuroLink, `{"role":"tool_result","tool":"f","content":"x"}`, ""},
		{NeuroLink, `{"role":"tool_call","tool":"f","args":{}}`, ""},
	} {
		raws := []codec.Raw{codec.Raw(`{"role":"user","content":"a"}`), codec.Raw(test.message)}
		if _, err := test.format.ReadAll(raws); err != nil {
			t.Errorf("%s cannot be read: %v", test.message, err)
		}
		_, err := test.format.ReadNew(raws)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s is refused: %v", test.message, err)
		case test.want != "" && (err == nil || err.Error() != test.want || CodeOf(err) != CodeMissingCallID):
			t.Errorf("%s: got %v, want %s", test.message, err, test.want)
		}
	}
}

// The error of an array in place of an event names what it holds and what to send.
func TestArrayForEvent(t *testing.T) {
	for payload, want := range map[string]string{
		`[]`:                               "the payload is an array of 0, not one JSON object",
		`[{"role":"user","content":"hi"}]`: `the payload is an array of 1, not one JSON object; if it is messages, send {"messages":[…]}`,
		`[{"turn":1,"messages":[]},{}]`:    "the payload is an array of 2, not one JSON object; send the events one by one",
		`[{"parts":[{"text":"hi"}]}]`:      `the payload is an array of 1, not one JSON object; if it is messages, send {"messages":[…]}`,
	} {
		_, err := DecodeTurn([]byte(payload))
		if err == nil || !strings.HasSuffix(err.Error(), want) || CodeOf(err) != CodeBadJSON {
			t.Errorf("%s: got %v, want %s", payload, err, want)
		}
	}
}
