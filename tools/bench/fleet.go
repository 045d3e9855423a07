package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/stored"
)

const (
	turnsPerSession = 100
	tenants         = 16
	classes         = 100  // of sessions; those of one class have one model
	reserve         = 8192 // max_output_tokens
	payloads        = 1024 // different exchanges: the history of a sync has no id of a call twice
)

// fleet makes the turns of synthetic agents: an answer of the model that calls a
// tool, and what the tool gave. All sessions run at once, turn by turn.
type fleet struct {
	sessions int
	payloads []string // the messages of a turn, a JSON array without brackets
	sums     []int64  // sums[i] is the tokens of the payloads before i, twice around
	base     int64    // tokens of a session before its first body
}

// question is what a session begins with.
const question = `{"role":"user","content":"Find out why the build fails and fix it."}`

// newFleet returns a fleet that makes n turns, 100 a session.
func newFleet(n int) (*fleet, error) {
	f := &fleet{sessions: max(n/turnsPerSession, 1)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range payloads {
		f.payloads = append(f.payloads, exchange(r, i))
	}
	return f, f.weigh()
}

// exchange is about 1,200 bytes; the envelope makes it 1.5 KiB.
func exchange(r *rand.Rand, i int) string {
	lines := ""
	if i%2 == 0 { // the others read the whole file, and can be deduplicated
		lines = fmt.Sprintf(`,"range":[%d,%d]`, r.IntN(100), 100+r.IntN(100))
	}
	call := fmt.Sprintf("toolu_%016x", r.Uint64())
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":%q,"name":"read_file","input":{"path":"/usr/src/app/internal/server/handler_%d.go"%s}}]},`,
		prose(r, 130+r.IntN(260)), call, r.IntN(40), lines) +
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, call, prose(r, 270+r.IntN(820)))
}

// words have what real text has: quotes to escape, and letters beyond ASCII.
var words = strings.Fields(`the agent reads a file and then calls the build tool which prints a long log line
error: cannot find symbol "parseHeader" in package server/http at line 214; retrying with cache disabled
func main() { fmt.Println("hello, world") } // handles the nil case
user wants to summarize context budget tokens window overflow compaction naïve café résumé 数据 —
{"status":"ok","items":[1,2,3]} path=/usr/local/lib/go/src/net/http/server.go status=200`)

// prose is a JSON string of about n bytes.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(14) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	quoted, _ := codec.Marshal(b.String()) // a string is always written
	return string(quoted)
}

// weigh finds what every body costs: the usage that agents report is what the
// ledger would have estimated, so that windows decide when an outcome is due.
func (f *fleet) weigh() error {
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return err
	}
	l := compaction.NewLedger(events.Address{Tenant: "t", Session: "s"})
	add := func(messages string) error {
		t, _, err := stored.ReadTurn(new(compaction.Config), l, vast(messages), 1)
		if err == nil {
			compaction.Apply(l, t, nil, c)
		}
		return err
	}
	if err := add(question); err != nil {
		return err
	}
	f.base = l.Budget().EstimatedInput
	for i := range 2 * payloads {
		f.sums = append(f.sums, l.Budget().EstimatedInput-f.base)
		if err := add(f.payloads[i%payloads]); err != nil {
			return err
		}
	}
	return nil
}

// vast is a turn without number or usage, of a model whose window nothing fills.
func vast(messages string) []byte {
	return withWindow(messages, 1<<38)
}

func withWindow(messages string, window int64) []byte {
	return fmt.Appendf(nil, `{"v":1,"model":{"provider":"anthropic","name":"claude-sonnet-4-20250514","max_output_tokens":%d,"context_window":%d},"format":"anthropic","messages":[%s]}`,
		reserve, window, messages)
}

// body is the messages of turn k of session s, both from 0.
func (f *fleet) body(s, k int) string { return f.payloads[(s*7+k)%payloads] }

// tokens is what session s costs before its turn k.
func (f *fleet) tokens(s, k int) int64 {
	i := s * 7 % payloads
	return f.base + f.sums[i+k] - f.sums[i]
}

// perTurn is what a turn costs on average.
func (f *fleet) perTurn() float64 { return float64(f.sums[payloads]) / payloads }

// message is turn i of all.
func (f *fleet) message(i int) *nats.Msg {
	s, k := i%f.sessions, i/f.sessions
	id := fmt.Sprintf("0198a3c4-%04x-7%03x-8000-%012x", i>>16, i&0xfff, i)
	messages := f.body(s, k)
	if k == 0 {
		messages = question + "," + messages
	}
	data := fmt.Appendf(nil, `{"v":1,"id":%q,"turn":%d,"model":{"provider":"anthropic","name":%q,"max_output_tokens":%d},"format":"anthropic","messages":[%s],"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":120}}`,
		id, k+1, modelOf(s%classes), reserve, messages, f.tokens(s, k)-4)
	subject := "session.turn.t" + strconv.Itoa(s%tenants) + ".s" + strconv.Itoa(s)
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{nats.MsgIdHdr: []string{id}}}
}

func modelOf(class int) string { return fmt.Sprintf("bench-%02d", class) }

// windows gives every class the window in which a session takes the share of its
// input at a turn of its own, spread evenly from turn first to turn last.
func (f *fleet) windows(share measure.PPM, first, last int) measure.Windows {
	w := measure.DefaultWindows()
	for c := range classes {
		turn := float64(first) + float64(last-first)*float64(c)/classes
		available := turn * f.perTurn() * 1e6 / float64(share)
		w["anthropic"][modelOf(c)] = measure.Tokens(available) + reserve
	}
	return w
}

// lean is the config under which a session gets one outcome in its 100 turns: it
// passes level info, a session.budget of about 700 bytes. Of the default policy
// only the share at which that level begins is changed, so that a session is far
// from any other outcome, and summaries are off: turns come so fast that the forecast
// would request one.
func (f *fleet) lean() (*compaction.Config, error) {
	p := policy.Default()
	p.Info = 50_000
	p.Summarize.Enabled = false
	return compaction.NewConfig(p, f.windows(p.Info, 11, 99))
}

// full is the config under which a session is compacted late in its 100 turns.
// Summaries are off, as they would add to the log that all rounds share, and
// level info is the trigger's, so that every outcome is a whole history.
func (f *fleet) full() (*compaction.Config, error) {
	p := policy.Default()
	p.Summarize.Enabled = false
	p.Info = p.Threshold
	return compaction.NewConfig(p, f.windows(p.Threshold, 60, 99))
}
