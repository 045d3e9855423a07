package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/ops/transcript"
	"compactd/internal/stored"
	"compactd/tools/needs"
	"compactd/tools/origin"
)

// corpus is a directory of transcripts, measured.
type corpus struct {
	name     string
	sessions []*recording
}

// long are the sessions that are not too short to lose anything.
func (c *corpus) long() []*recording {
	return slices.DeleteFunc(slices.Clone(c.sessions), func(r *recording) bool { return len(r.turns) < shortSession })
}

// sampled is how many sessions of a corpus the measures take that play each of them many times.
const sampled = 8

// sample are at most n of the long sessions: in turn one of each repository.
func (c *corpus) sample(n int) []*recording {
	byRepository := map[string][]*recording{}
	var order []string
	for _, r := range c.long() {
		if byRepository[r.repository] == nil {
			order = append(order, r.repository)
		}
		byRepository[r.repository] = append(byRepository[r.repository], r)
	}
	var out []*recording
	for round := 0; len(out) < min(n, len(c.long())); round++ {
		for _, name := range order {
			if all := byRepository[name]; round < len(all) && len(out) < n {
				out = append(out, all[round])
			}
		}
	}
	return out
}

// shortSession is the number of turns below which a session is left out: one of
// a few exchanges has nothing that it could lose.
const shortSession = 40

// recording is one session, read once for all its runs.
type recording struct {
	name   string
	format events.Format
	turns  []recorded

	session transcript.Session // as it was read

	harness    string // the program that recorded it
	repository string // sessions of one are never on both sides of a split
}

// recorded is one turn. It stands in the log at a sequence that leaves room for
// the summaries that come in between.
type recorded struct {
	number   int64
	at       int64 // when it was recorded, in Unix milliseconds; 0 if unknown
	seq      measure.Seq
	payload  []byte
	turn     *compaction.Turn
	messages []dialect.Message
	tokens   []int64 // of each, estimated
	summary  string  // what the recorded agent wrote before it, where that compacted here
}

// seqStep is the distance of two turns in the log.
const seqStep = 1 << 10

// readCorpora reads the real sessions and the examples. Without real sessions it
// prints a note: everything then comes from the examples alone.
func readCorpora(o options, p printer) ([]*corpus, error) {
	var out []*corpus
	if o.real == "" {
		p.note("NO REAL SESSIONS: set COMPACTD_SESSIONS to a directory of transcripts. What follows is of the examples alone.")
	} else {
		c, err := readCorpus("real", filepath.SplitList(o.real), o.sessions, p)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	c, err := readCorpus("examples", []string{o.examples}, o.sessions, p)
	if err != nil {
		return nil, err
	}
	return append(out, c), nil
}

// readCorpus reads the first n sessions of directories, 0 for all. One that cannot be read is a
// note, and so is one that was read before in another form.
func readCorpus(name string, dirs []string, n int, p printer) (*corpus, error) {
	source, err := transcript.Open(transcript.Auto, dirs...)
	if err != nil {
		return nil, err
	}
	c, known := &corpus{name: name}, map[string]bool{}
	for s := range source.Sessions(func(err error) { p.note("left out: %v", err) }) {
		r, err := record(s, true)
		if err != nil {
			p.note("left out: session %s: %v", s.Name, err)
			continue
		}
		calls := r.firstCalls()
		if calls != "" && known[calls] {
			p.note("left out: session %s: was read before in another form", s.Name)
			continue
		}
		known[calls] = true
		if c.sessions = append(c.sessions, r); len(c.sessions) == n {
			break
		}
	}
	return c, nil
}

// firstCalls are the ids and arguments of the first calls of a session, "" for none.
func (r *recording) firstCalls() (out string) {
	const enough = 8
	n := 0
	for _, t := range r.turns {
		for _, m := range t.messages {
			for _, p := range m.Parts {
				if p.Kind != dialect.PartCall {
					continue
				}
				m.Parts = []dialect.Part{p}
				out += p.CallID + "\n" + needs.Text([]dialect.Message{m})
				if n++; n == enough {
					return out
				}
			}
		}
	}
	return out
}

// record reads a session, with instructions planted or as it is.
func record(s transcript.Session, plant bool) (*recording, error) {
	r := &recording{name: s.Name, format: s.Format, session: s}
	for i, t := range s.Turns {
		at := int64(0)
		if !t.At.IsZero() {
			at = t.At.UnixMilli()
		}
		payload := t.Payload
		if plant {
			var err error
			if payload, err = instructed(payload, i, len(s.Turns)); err != nil {
				return nil, err
			}
		}
		if err := r.add(payload, at); err != nil {
			return nil, err
		}
		r.turns[i].summary = t.Summary
	}
	r.harness, r.repository = origin.Harness(r.messages()), origin.Repository(s.Name)
	return r, nil
}

// instructed adds a message of the system to some turns of a session: few are recorded that
// instruct their agent within the conversation.
func instructed(payload []byte, turn, of int) ([]byte, error) {
	if step := max(of/planted, 1); turn%step != step/2 {
		return payload, nil
	}
	var fields map[string]codec.Raw
	var messages []codec.Raw
	if err := codec.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn+1, err)
	}
	if err := codec.Unmarshal(fields["messages"], &messages); err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn+1, err)
	}
	order := fmt.Sprintf("Standing order %d:\n  - name variables after planet no. %d, as in the list;\n  - leave branch release-%d alone.", turn+1, turn+1, turn+1)
	message, err := codec.Marshal(map[string]string{"role": "system", "content": order})
	if err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn+1, err)
	}
	if fields["messages"], err = codec.Marshal(append(messages, message)); err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn+1, err)
	}
	return codec.Marshal(fields)
}

// planted is how many instructions are added to a session.
const planted = 8

// estimate is how the default policy counts for Claude.
var estimate = measure.NewRate(measure.Profiles["default"], "anthropic")

// add reads the next turn.
func (r *recording) add(payload []byte, at int64) error {
	n := int64(len(r.turns)) + 1
	seq := measure.Seq(n) * seqStep
	turn, messages, err := stored.ReadTurn(new(compaction.Config), compaction.NewLedger(address), payload, seq)
	if err != nil {
		return fmt.Errorf("turn %d: %w", n, err)
	}
	tokens := make([]int64, len(messages))
	for i := range messages {
		tokens[i] = int64(estimate.Count(needs.Text(messages[i : i+1])))
	}
	r.turns = append(r.turns, recorded{n, at, seq, payload, turn, messages, tokens, ""})
	return nil
}

// turnsRead are the messages of all turns.
func (r *recording) turnsRead() []facts.Turn {
	out := make([]facts.Turn, len(r.turns))
	for i, t := range r.turns {
		out[i] = facts.Turn{Number: t.number, Messages: t.messages}
	}
	return out
}

// messages are those of each turn.
func (r *recording) messages() [][]dialect.Message {
	out := make([][]dialect.Message, len(r.turns))
	for i, t := range r.turns {
		out[i] = t.messages
	}
	return out
}

// timed reports whether it is known when each turn came.
func (r *recording) timed() bool {
	return !slices.ContainsFunc(r.turns, func(t recorded) bool { return t.at == 0 })
}

// gaps are the pauses between the turns, in milliseconds.
func (r *recording) gaps() []int64 {
	var out []int64
	for i := 1; i < len(r.turns); i++ {
		out = append(out, max(0, r.turns[i].at-r.turns[i-1].at))
	}
	return out
}

// ids finds those of calls, which must not come twice in a session.
var ids = regexp.MustCompile(`("(?:id|tool_use_id)":\s*")([^"]+)"`)

// repeat makes a session of n times the same. Usage goes: it was counted for
// another history.
func repeat(r *recording, n int) (*recording, error) {
	out := &recording{name: r.name, format: r.format}
	for i := range n {
		for _, t := range r.turns {
			data, err := renewed(t.payload, len(out.turns)+1, 0, i)
			if err == nil {
				err = out.add(data, t.at)
			}
			if err != nil {
				return nil, fmt.Errorf("repeat session: %w", err)
			}
		}
	}
	return out, nil
}
