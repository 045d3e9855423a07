package events

import (
	"fmt"
	"strings"
	"testing"
)

// agentTurn is a turn of 1.5 KiB: an answer that calls a tool, and what it gave.
var agentTurn = fmt.Appendf(nil, `{"v":1,"id":"0198a3c4-0000-7000-8000-000000000001","turn":7,`+
	`"model":{"provider":"anthropic","name":"claude-sonnet-4-20250514","max_output_tokens":8192},"format":"anthropic","messages":[`+
	`{"role":"assistant","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"toolu_0123456789abcdef","name":"read_file","input":{"path":"/usr/src/app/handler.go","range":[10,20]}}]},`+
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0123456789abcdef","content":"%s"}]}],`+
	`"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":12345,"output_tokens":120}}`,
	strings.Repeat(`the agent writes \"why\", naïvely `, 9), strings.Repeat(`error: cannot find symbol at line 214\n`, 18))

// The work of a worker on the bytes of a turn before it measures them.
func BenchmarkTurn(b *testing.B) {
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(agentTurn)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeTurn(agentTurn); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		var d Decoder
		b.SetBytes(int64(len(agentTurn)))
		b.ReportAllocs()
		for b.Loop() {
			if !d.onePass(agentTurn, Anthropic) {
				b.Fatal("not in one pass")
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		turn, err := DecodeTurn(agentTurn)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(agentTurn)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := turn.Format.ReadAll(turn.Messages); err != nil {
				b.Fatal(err)
			}
		}
	})
}
