package whatif

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/testkit/linear"
)

// longSession has n turns, each with a call and its result.
func longSession(n int) *Session {
	s := &Session{Address: events.Address{Tenant: "t", Session: "s"}}
	for i := range n {
		s.Events = append(s.Events, Event{
			Seq: measure.Seq(i + 1), Time: int64(i) * 1000, Kind: events.KindTurn,
			Data: fmt.Appendf(nil, `{"turn":%d,"model":{"context_window":16000},"messages":[{"role":"user","content":"Look at file %[1]d of the program."},`+
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/f%[1]d.go\"}"}}]},`+
				`{"role":"tool","tool_call_id":"c%[1]d","content":%q}]}`, i+1, strings.Repeat(fmt.Sprintf("line of file %d\n", i), 60)),
		})
	}
	return s
}

// P24: replaying a session under a policy costs in proportion to its turns, of which each so many
// lead to a compaction.
func TestReplayLinear(t *testing.T) {
	const n, most = 150, 2.5
	for _, name := range []string{"default", "neurolink", "claude"} {
		p := []Policy{preset(t, name)}
		sessions := [2]*Session{longSession(n), longSession(4 * n)}
		got := linear.RatioOf(n, most, func(size int) linear.Cost {
			return linear.OfProcess(func() {
				if r := report(t, sessions[size:size+1], p, 0); r.Invalid() > 0 {
					t.Errorf("%d invalid histories", r.Invalid())
				}
			})
		})
		if got.Worst() > most {
			t.Errorf("%s: a turn costs %.2f times as much CPU and %.2f as many bytes in a session of four times the turns", name, got.CPU, got.Bytes)
		}
	}
}
