package partition

import (
	"bytes"
	"fmt"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
)

// agent is an agent, its operator and its summarizer: all that publish for one session.
type agent struct {
	s       *simulation
	address events.Address
	sent    []message // all turns there ever were
	number  int       // of the last one
	held    []message // that are late
	jobs    []simulatedJob
	undone  []simulatedJob // whose summarizer crashed when it had published the summary
	gen     int64          // of the last compaction
	window  int
	ids     int       // so far
	callers []*caller // whose syncs publish its turns; nil where it publishes them
	parent  string    // the session that its session branches off, or ""
}

// message was published, and may be again.
type message struct {
	kind events.Kind
	id   string
	data []byte
}

func newAgent(s *simulation, session string) *agent {
	return &agent{
		s: s, address: events.Address{Tenant: "default", Session: session},
		window: []int{250, 350, 500}[s.IntN(3)],
	}
}

func (a *agent) step() {
	switch n := a.s.IntN(100); {
	case a.s.erases && a.s.odds(3):
		a.forget()
	case len(a.callers) > 0 && (n < 62 || n >= 69 && n < 74):
		if c := a.callers[a.s.IntN(len(a.callers))]; a.s.depth < 2 {
			c.step()
		}
	case n < 62:
		a.turn(0)
	case n < 69 && len(a.sent) > 0: // its acknowledgement was lost
		a.s.counts.Resent++
		a.publish(a.sent[a.s.IntN(len(a.sent))])
	case n < 72 && a.number > 1:
		a.turn(1 + a.s.IntN(a.number))
	case n < 74 && a.number > 0: // another turn of that number
		a.number--
		a.turn(0)
	case n < 78:
		a.ask(events.KindRewind, a.rewind())
	case n < 80:
		a.ask(events.KindCompact, `"focus":"the parser"`)
	case n < 82:
		a.ask(events.KindOverflow, fmt.Sprintf(`"error":"prompt is too long: %d tokens > %d maximum","status":400`, a.window+50, a.window))
	case n < 83:
		a.ask(events.KindIdle, `"v":1`)
	case n < 85:
		a.ask(events.KindEnd, `"v":1`)
		a.number = 0
	case n < 86:
		a.publish(message{events.KindTurn, "", malformed})
	default:
		a.answer()
	}
}

func (a *agent) rewind() string {
	if a.s.odds(50) {
		return `"steps":1`
	}
	return fmt.Sprintf(`"generation":%d`, a.s.Int64N(a.gen+1))
}

func (a *agent) publish(m message) { a.s.publish(m.kind, a.address, m.id, m.data) }

func (a *agent) id() string {
	a.ids++
	return fmt.Sprintf("%s-%d", a.address.Session, a.ids)
}

func (a *agent) ask(k events.Kind, body string) {
	id := a.id()
	m := message{k, id, fmt.Appendf(nil, `{"id":%q,%s}`, id, body)}
	a.sent = append(a.sent, m)
	a.publish(m)
}

// turn publishes what comes next; one that replaces others takes their place.
func (a *agent) turn(from int) {
	id, more := a.id(), ""
	if a.number++; from > 0 {
		a.number, more = from, fmt.Sprintf(`"replaces_from":%d,`, from)
	}
	if a.number == 1 || a.s.odds(4) {
		more += fmt.Sprintf(`"format":"openai","model":{"provider":%q,"name":"m","context_window":%d,"max_output_tokens":%d},`,
			[]string{"openai", "anthropic"}[a.s.IntN(2)], a.window, a.window/5)
	}
	if a.number == 1 && a.parent != "" {
		more += fmt.Sprintf(`"forked_from":{"session":%q,"turn":%d},`, a.parent, a.s.IntN(3))
	}
	messages, answered := a.messages(id)
	if answered && a.s.odds(30) {
		more += fmt.Sprintf(`"generation":%d,"usage":{"input_tokens":%d},`, a.gen, 1+a.s.IntN(a.window))
	}
	m := message{events.KindTurn, id, fmt.Appendf(nil, `{"id":%q,"turn":%d,%s"messages":[%s]}`, id, a.number, more, messages)}
	a.sent = append(a.sent, m)
	if from == 0 && a.number > 1 && a.s.odds(6) {
		a.s.counts.Gaps++
		a.held = append(a.held, m)
		return
	}
	a.publish(m)
	if a.s.odds(60) {
		a.release()
	}
}

// malformed is no turn.
var malformed = []byte(`{"turn":-1,"messages":7}`)

// filler is text to publish.
var filler = strings.Repeat("the quick brown fox jumps over the lazy dog ", 20)

func (a *agent) text(id string) string { return id + " " + filler[:10+a.s.IntN(a.window/3)] }

// messages are those of one turn: of the user, or of the assistant, with a file
// that it read or without.
func (a *agent) messages(id string) (_ string, assistant bool) {
	switch a.s.IntN(3) {
	case 0:
		return fmt.Sprintf(`{"role":"user","content":%q}`, a.text(id)), false
	case 1:
		return fmt.Sprintf(`{"role":"assistant","content":%q}`, a.text(id)), true
	}
	return fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":%[1]q,"type":"function","function":{"name":"read","arguments":"{\"path\":\"%[2]s.go\"}"}}]},`+
		`{"role":"tool","tool_call_id":%[1]q,"content":%[3]q}`, id, "ab"[:1+a.s.IntN(2)], a.text(id)), true
}

// release publishes the turns that are late, the last one first.
func (a *agent) release() {
	for len(a.held) > 0 {
		n := len(a.held) - 1
		a.publish(a.held[n])
		a.held = a.held[:n]
	}
}

// receive takes an outcome that was committed.
func (a *agent) receive(o compaction.Outcome, partition int) {
	switch b := o.Body.(type) {
	case *events.Forgotten: // perhaps with the session that it branched off
		a.number = 0
	case *events.Job:
		a.jobs = append(a.jobs, simulatedJob{b, partition})
		if a.s.odds(60) {
			a.answer()
		}
	case *events.Compacted:
		a.gen = b.Generation
		a.s.counts.Compactions++
		if b.RewoundTo != nil {
			a.s.counts.Rewinds++
		}
	}
}

// answer publishes a result of some job: mostly of the last one; also late, twice,
// failed, or larger than was requested.
func (a *agent) answer() {
	if len(a.jobs) == 0 {
		return
	}
	job := a.jobs[len(a.jobs)-1]
	if a.s.odds(30) {
		job = a.jobs[a.s.IntN(len(a.jobs))]
	}
	text, fail, id := "a summary ", "", job.ID
	switch n := a.s.IntN(10); {
	case n == 0:
		text, fail = "", "no_room"
	case n == 1:
		text = strings.Repeat(text, 1+int(job.MaxUnits)/len(text))
	case n == 2: // of another summarizer, which has not seen the first
		id = a.id()
	}
	a.s.counts.Summaries++
	a.summarized(job, message{events.KindSummary, id, fmt.Appendf(nil, `{"v":1,"id":%q,"job":%q,"text":%q,"record":[],"model":"m","failure":%q}`, id, job.ID, text, fail)})
}

// relabel makes a summary answer the last job of its session.
func (s *simulation) relabel(e decide.Event) []byte {
	for _, a := range s.agents {
		if n := len(a.jobs); a.address == e.Address && n > 0 {
			for _, j := range a.jobs {
				e.Data = bytes.ReplaceAll(e.Data, []byte(j.ID), []byte(a.jobs[n-1].ID))
			}
		}
	}
	return e.Data
}
