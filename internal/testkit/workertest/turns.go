package workertest

import (
	"fmt"
	"strings"

	"compactd/internal/events/codec"
)

// Turn is a session.turn of one exchange, about 1,000 tokens.
func Turn(n int) []byte {
	text := strings.Repeat(fmt.Sprintf("word %d ", n), 200)
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, n, text, text)
}

// BigTurn is turn n of a session with a window of that many tokens: one exchange with a text
// of that many bytes.
func BigTurn(n, window, bytes int) []byte {
	return fmt.Appendf(nil, `{"v":1,"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":%d,"max_output_tokens":1000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":"ok"}]}`,
		n, window, strings.Repeat("lorem ipsum ", bytes/12))
}

// UsageTurn is a turn of about 500 tokens. The first six carry the usage of a provider that
// counted more than any estimate.
func UsageTurn(n int) []byte {
	text, usage := strings.Repeat(fmt.Sprintf("word %d ", n), 150), ""
	if n <= 6 {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d}`, 900*n)
	}
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000,"max_output_tokens":1000},`+
		`"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]%s}`, n, n, text, text, usage)
}

// CallsTurn is a session.turn of an Anthropic agent with tool calls, given as tool:path, and
// their results.
func CallsTurn(n int, named ...string) []byte {
	var uses, results []string
	for i, c := range named {
		tool, path, _ := strings.Cut(c, ":")
		uses = append(uses, fmt.Sprintf(`{"type":"tool_use","id":"c%d_%d","name":%q,"input":{"path":%q}}`, n, i, tool, path))
		results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d_%d","content":"the content of %s"}`, n, i, path))
	}
	return fmt.Appendf(nil, `{"turn":%d,"model":{"provider":"anthropic","name":"claude-sonnet-4-20250514"},"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":[%s]},{"role":"user","content":[%s]}]}`,
		n, strings.Join(uses, ","), strings.Join(results, ","))
}

// ClearedTurns are turns that end with a compaction that clears n tool results, with an edit
// for each.
func ClearedTurns(n int) [][]byte {
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

// BadTurn is a turn that is rejected.
const BadTurn = `{"messages":7}`

// Canary is in the content of every hostile event. It must not appear in a log, nor in a
// rejection.
const Canary = "canary-7c1d5e"

// Attachment is a file with a text of so many bytes, of lines that say something.
func Attachment(name string, bytes int) string {
	var b strings.Builder
	for n := 1; b.Len() < bytes; n++ {
		fmt.Fprintf(&b, "func step%d(in Input) error { return handle(in, %d) } // step %d of the plan\n", n, n, n)
	}
	data, _ := codec.Marshal(map[string]string{"name": name, "text": b.String()[:bytes]})
	return string(data)
}
