package compaction

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Turn is a session.turn, measured.
type Turn struct {
	Seq    Seq
	ID     string
	Time   int64 // of the log, in Unix milliseconds
	number int64 // 0 = the next
	from   int64 // replaces_from
	hash   measure.Key

	model    *events.Model // nil = unchanged
	format   events.Format // of its messages
	system   *measure.Size // nil = unchanged
	tools    *measure.Size // nil = unchanged
	override events.Raw    // nil = unchanged

	entries      []Entry
	usage        *events.Usage
	generation   int64  // that the usage was counted for
	usageProblem string // why a usage that was there could not be read
	fault        error  // what refuses it, unless it was taken before; not stored
}

// ReadTurn measures the payload of a turn for the session it belongs to: the
// dialect of a message is that of its session. It estimates; [Config.ReadTurn]
// counts as its config sets it. Its error is an [events.Invalid].
func ReadTurn(l *Ledger, data []byte, seq Seq) (*Turn, []events.Message, error) {
	return measureTurn(measure.Meter{}, l, data, seq, events.Format.ReadAll)
}

// ReadTurn is the function of that name, with the counter of the config.
func (c *Config) ReadTurn(l *Ledger, data []byte, seq Seq) (*Turn, []events.Message, error) {
	return measureTurn(measure.Meter{Counter: c.counter}, l, data, seq, events.Format.ReadAll)
}

// MeasureTurn is [Config.ReadTurn] without the messages, whose texts are not made.
func (c *Config) MeasureTurn(l *Ledger, data []byte, seq Seq) (*Turn, error) {
	t, _, err := measureTurn(measure.Meter{Counter: c.counter}, l, data, seq, events.Format.ScanAll)
	return t, err
}

// measureTurn measures what read makes of the messages of a turn.
func measureTurn(by measure.Meter, l *Ledger, data []byte, seq Seq, read func(events.Format, []events.Raw) ([]events.Message, error)) (*Turn, []events.Message, error) {
	in, err := events.DecodeTurn(data)
	if err != nil {
		return nil, nil, err
	}
	format := formatOf(l, in)
	msgs, err := read(format, in.Messages)
	if err != nil {
		return nil, nil, err
	}
	t := &Turn{
		Seq: seq, ID: in.ID, number: in.Number, from: in.ReplacesFrom, hash: hashTurn(in),
		model: in.Model, format: format, system: by.Field(in.System), tools: by.Field(in.Tools), override: bytes.Clone(in.Policy),
		usage: in.Usage, generation: in.Generation, usageProblem: in.UsageProblem,
		fault: format.Complete(msgs),
	}
	t.number = max(t.number, t.from)
	t.entries = slices.Grow(t.entries, mostEntries(msgs))
	for i, m := range msgs {
		t.entries = by.Measure(t.entries, m, Entry{Seq: seq, Index: uint32(i)})
	}
	return t, msgs, nil
}

// mostEntries is how many entries messages can have.
func mostEntries(msgs []events.Message) (n int) {
	for i := range msgs {
		n += max(1, len(msgs[i].Parts))
	}
	return n
}

func formatOf(l *Ledger, in *events.Turn) events.Format {
	switch {
	case in.Format != "":
		return in.Format
	case l.format != "":
		return l.format
	case in.Model != nil:
		return events.DefaultFormat(in.Model.Provider)
	default:
		return events.DefaultFormat("")
	}
}

// hashTurn is the identity of a turn's content: what is sent twice under one
// number and is equal in it was sent by mistake. Retracting turns is an act, so
// the event's id belongs to it.
func hashTurn(in *events.Turn) measure.Key {
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	if in.ReplacesFrom > 0 {
		part(fmt.Appendf(nil, "%d %s", in.ReplacesFrom, in.ID))
	}
	part(in.System)
	part(in.Tools)
	part(in.Policy)
	if in.Model != nil {
		part(appendModel(nil, in.Model))
	}
	for _, m := range in.Messages {
		part(m)
	}
	return max(1, measure.Key(binary.BigEndian.Uint64(h.Sum(nil))))
}

func appendModel(b []byte, m *events.Model) []byte {
	b = append(strconv.AppendQuote(b, m.Provider), ' ')
	b = append(strconv.AppendQuote(b, m.Name), ' ')
	b = append(strconv.AppendInt(b, m.MaxOutputTokens, 10), ' ')
	return strconv.AppendInt(b, m.ContextWindow, 10)
}

// verdict is what a turn means for a ledger.
type verdict uint8

const (
	accept verdict = iota // it is the next turn, or replaces from one that is there
	ignore                // it was taken before
	park                  // turns before it are missing
	reject
)

// refuse returns what is wrong with a turn under the config in use: calls or results
// without ids, a policy that does not fit, or a model without any room for input.
func (l *Ledger) refuse(t *Turn) error {
	if t.fault != nil {
		return t.fault
	}
	c, policy := l.cache.config, l.cache.policy
	if t.override != nil {
		p, err := c.For(l.Address.Tenant).With(t.override)
		if err != nil {
			return err
		}
		policy = &p
	}
	return c.fits("model.max_output_tokens", t.model, policy)
}

// admit decides about a turn by its number. The code is set for deny.
func (l *Ledger) admit(t *Turn) (verdict, events.Code) {
	next := l.LastTurn() + 1
	if v := l.seen(t, next); v != accept {
		if v == reject {
			return reject, events.CodeTurnConflict
		}
		return v, ""
	}
	switch {
	case t.from > next:
		return reject, events.CodeOutOfRange
	case t.from != 1 && l.format != "" && t.format != l.format:
		return reject, events.CodeFormatChanged
	case t.number <= next:
		return accept, ""
	case len(l.parked) == maxParked:
		return reject, events.CodeTooManyParked
	default:
		return park, ""
	}
}

// seen compares a turn with one of its number that came before.
func (l *Ledger) seen(t *Turn, next int64) verdict {
	var old measure.Key
	if t.number > 0 && t.number < next {
		old = l.turns[t.number-1].hash
	}
	for _, p := range l.parked {
		if p.number == t.number {
			old = p.hash
		}
	}
	switch {
	case old == 0:
		return accept
	case old == t.hash:
		return ignore
	case t.from > 0:
		return accept
	default:
		return reject
	}
}
