package compaction

import (
	"encoding/binary"
	"errors"
	"fmt"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/idents"
	"compactd/internal/events/weigh"
)

// Row is one piece of a stored ledger, beside its [Header]. Rows of a ledger have distinct names; their data
// is opaque to other packages, and has no checksum of its own.
type Row struct {
	Name string
	Data []byte
}

// Names of rows: the chunks of entries, turns and edits by number.
const (
	rowEntries = "e"
	rowTurns   = "t"
	rowEdits   = "m"
)

// The numbers of turns and of edits in one row.
const (
	turnsPerRow = 64
	editsPerRow = 128
)

// changed is the unstored part of a ledger: everything from these positions on.
type changed struct{ entry, turn, edit int }

// Header is the stored form of a ledger without its entries, turns and edits.
type Header struct {
	Entries     int            `json:"entries"`
	Turns       int            `json:"turns"`
	Model       events.Model   `json:"model"`
	Format      events.Format  `json:"format"`
	System      weigh.Size     `json:"system"`
	Tools       weigh.Size     `json:"tools"`
	SystemSeq   measure.Seq    `json:"system_seq"`
	ToolSeq     measure.Seq    `json:"tool_seq"`
	Override    codec.Raw      `json:"override,omitzero"`
	Prompts     prompts        `json:"prompts,omitzero"`
	Hidden      []span         `json:"hidden,omitzero"`
	CompactedTo int            `json:"compacted_to"`
	Parked      []parkedRow    `json:"parked,omitzero"`
	Level       events.Level   `json:"level"`
	LastTurnAt  int64          `json:"last_turn_ms"`
	IdleHandled bool           `json:"idle_handled"`
	Ages        []age          `json:"ages,omitzero"`
	Attempted   measure.Tokens `json:"attempted"`
	WhileOpen   bool           `json:"while_open,omitzero"`
	BlockedAt   int64          `json:"blocked_at,omitzero"`
	Generations []generation   `json:"generations,omitzero"`
	Edits       int            `json:"edits"`
	Usage       calibration    `json:"usage"`
	limits
	Overflows int64                `json:"overflows"`
	Job       *pendingJob          `json:"job,omitzero"`
	Prepared  *stage.Summary       `json:"prepared,omitzero"`
	Named     []idents.Key         `json:"named,omitzero"`
	Breaker   breaker              `json:"breaker"`
	Regret    measure.Regret       `json:"regret,omitzero"`
	Cost      events.Cost          `json:"cost,omitzero"`
	Made      events.SummaryCounts `json:"made,omitzero"`
	Carried   measure.Tokens       `json:"carried,omitzero"`
	Work      work                 `json:"work,omitzero"`
	Growth    []uint32             `json:"growth,omitzero"`
	GrownAt   int64                `json:"grown_ms,omitzero"`
	Took      []int64              `json:"took_ms,omitzero"`
	Noted     []uint32             `json:"noted,omitzero"`
	Fork      *Forked              `json:"forked_from,omitzero"`
	Lineages  lineages             `json:"lineages,omitzero"`
}

// parkedRow is a turn that waits for an earlier one.
type parkedRow struct {
	Seq          measure.Seq    `json:"seq"`
	ID           string         `json:"id"`
	Time         int64          `json:"time"`
	Number       int64          `json:"number"`
	From         int64          `json:"from"`
	Digest       events.Digest  `json:"digest,omitzero"`
	Hash         dialect.Key    `json:"hash"` // of its settings
	Messages     uint32         `json:"messages"`
	Expect       *events.Expect `json:"expect,omitzero"`
	Model        *events.Model  `json:"model,omitzero"`
	Format       events.Format  `json:"format"`
	System       *weigh.Size    `json:"system,omitzero"`
	Tools        *weigh.Size    `json:"tools,omitzero"`
	SystemKey    dialect.Key    `json:"system_key,omitzero"`
	ToolsKey     dialect.Key    `json:"tools_key,omitzero"`
	Marks        marks          `json:"marks,omitzero"`
	Override     codec.Raw      `json:"override,omitzero"`
	Entries      []byte         `json:"entries,omitzero"`
	Usage        *events.Usage  `json:"usage,omitzero"`
	Generation   int64          `json:"generation"`
	UsageProblem string         `json:"usage_problem,omitzero"`
	Fork         *events.Fork   `json:"forked_from,omitzero"`
}

// Rows returns the rows that changed since the last call of Stored.
func (l *Ledger) Rows() (out []Row) {
	for c := chunkOf(l.changed.entry); c < len(l.entries.list) && chunkStart(c) < l.entries.n; c++ {
		var b []byte
		for i := chunkStart(c); i < min(chunkStart(c+1), l.entries.n); i++ {
			b = appendEntry(b, l.entries.at(i))
		}
		out = append(out, Row{rowName(rowEntries, c), b})
	}
	for r := l.changed.turn / turnsPerRow; r*turnsPerRow < len(l.turns); r++ {
		var b []byte
		for i := r * turnsPerRow; i < min((r+1)*turnsPerRow, len(l.turns)); i++ {
			t := &l.turns[i]
			b = binary.LittleEndian.AppendUint64(append(b, t.digest[:]...), uint64(t.settings))
			b = binary.LittleEndian.AppendUint64(b, uint64(t.seq))
			b = binary.LittleEndian.AppendUint32(b, t.input)
			b = binary.LittleEndian.AppendUint32(b, l.messagesOf(i))
		}
		out = append(out, Row{rowName(rowTurns, r), b})
	}
	for r := l.changed.edit / editsPerRow; r*editsPerRow < len(l.edits); r++ {
		var b []byte
		for _, m := range l.edits[r*editsPerRow : min((r+1)*editsPerRow, len(l.edits))] {
			b = binary.LittleEndian.AppendUint32(b, m.entry)
			b = binary.LittleEndian.AppendUint32(b, m.gen)
			b = binary.LittleEndian.AppendUint32(b, m.units)
			b = binary.LittleEndian.AppendUint16(b, m.lines)
			b = append(b, byte(m.op))
		}
		out = append(out, Row{rowName(rowEdits, r), b})
	}
	return out
}

// Stored notes that the results of Header and Rows are stored.
func (l *Ledger) Stored() { l.changed = changed{l.entries.n, len(l.turns), len(l.edits)} }

func rowName(kind string, n int) string { return fmt.Sprintf("%s%08x", kind, n) }

// Header returns the part of the ledger that is not in rows. It shares memory with the ledger.
func (l *Ledger) Header() *Header {
	h := &Header{
		Entries: l.entries.n, Turns: len(l.turns), Model: l.model, Format: l.format,
		System: l.system, Tools: l.tools, SystemSeq: l.systemSeq, ToolSeq: l.toolSeq,
		Override: l.override, Prompts: l.prompts, Hidden: l.hidden, CompactedTo: l.compactedTo, Level: l.level, LastTurnAt: l.lastTurnAt, IdleHandled: l.idleHandled, Ages: l.ages, Attempted: l.attempted, WhileOpen: l.whileOpen, BlockedAt: l.blockedAt,
		Generations: l.generations, Edits: len(l.edits), Usage: l.usage, limits: l.limits, Overflows: l.overflows,
		Job: l.job, Prepared: l.prepared, Named: l.named, Breaker: l.breaker, Noted: l.noted, Fork: l.forkedAt, Lineages: l.lineages,
		Regret: l.regret, Cost: l.cost, Made: l.made, Carried: l.carried, Work: l.work, Growth: l.growth.rows(), GrownAt: l.growth.last, Took: l.took,
	}
	for _, t := range l.parked {
		p := parkedRow{
			t.Seq, t.ID, t.Time, t.number, t.from, t.digest, t.settings, t.messages, t.expect, t.model, t.format, t.system, t.tools, t.systemKey, t.toolsKey, t.marks, t.override,
			[]byte{},
			t.usage, t.generation, t.usageProblem, t.fork,
		}
		for i := range t.entries {
			p.Entries = appendEntry(p.Entries, &t.entries[i])
		}
		h.Parked = append(h.Parked, p)
	}
	return h
}

var errRows = errors.New("the rows do not make a ledger")

// Restore makes a ledger of its header, which it takes over, and its rows, in any order. Rows beyond the
// counts of the header are left over from retracted turns; they and rows of other names are ignored.
func Restore(a events.Address, h *Header, rows []Row) (*Ledger, error) {
	l := NewLedger(a)
	byName := map[string][]byte{}
	for _, r := range rows {
		byName[r.Name] = r.Data
	}
	l.model, l.format, l.override, l.hidden, l.compactedTo = h.Model, h.Format, h.Override, h.Hidden, h.CompactedTo
	l.prompts, l.forkedAt, l.lineages = h.Prompts, h.Fork, h.Lineages
	l.system, l.tools, l.systemSeq, l.toolSeq = h.System, h.Tools, h.SystemSeq, h.ToolSeq
	l.generations, l.level, l.lastTurnAt, l.idleHandled, l.ages = h.Generations, h.Level, h.LastTurnAt, h.IdleHandled, h.Ages
	l.attempted, l.whileOpen, l.blockedAt = h.Attempted, h.WhileOpen, h.BlockedAt
	l.usage, l.limits, l.overflows = h.Usage, h.limits, h.Overflows
	l.job, l.prepared, l.named, l.breaker, l.noted = h.Job, h.Prepared, h.Named, h.Breaker, h.Noted
	l.regret, l.cost, l.made, l.carried, l.work = h.Regret, h.Cost, h.Made, h.Carried, h.Work
	l.growth, l.took = growthOf(h.Growth, h.GrownAt), h.Took
	for _, s := range h.Hidden {
		if s.From < 0 || s.From >= s.To || s.To > h.Entries {
			return nil, fmt.Errorf("restore ledger: %w", errRows)
		}
	}
	for _, p := range h.Parked {
		entries, err := readEntries(p.Entries)
		if err != nil {
			return nil, fmt.Errorf("restore ledger: %w", err)
		}
		l.parked = append(l.parked, &Turn{
			p.Seq, p.ID, p.Time, p.Number, p.From,
			identity{p.Digest, p.Hash},
			p.Messages, p.Expect, p.Fork,
			p.Model, p.Format, p.System, p.Tools, p.Override, p.SystemKey, p.ToolsKey, p.Marks,
			entries, p.Usage,
			events.Usage{},
			p.Generation, p.UsageProblem, nil, nil,
		})
	}
	if err := l.fill(h, byName); err != nil {
		return nil, fmt.Errorf("restore ledger: %w", err)
	}
	l.Stored()
	return l, nil
}

// The sizes of a stored turn and edit.
const (
	turnBytes = len(events.Digest{}) + 2*8 + 2*4
	editBytes = 3*4 + 2 + 1
)

// fill reads entries, turns and edits.
func (l *Ledger) fill(h *Header, byName map[string][]byte) error {
	for c := 0; l.entries.n < h.Entries; c++ {
		entries, err := readEntries(byName[rowName(rowEntries, c)])
		if err != nil {
			return err
		}
		entries = entries[:min(len(entries), h.Entries-l.entries.n)]
		if want := min(chunkStart(c+1), h.Entries) - chunkStart(c); len(entries) != want {
			return errRows
		}
		for _, e := range entries {
			l.entries.add(e)
		}
	}
	for r := 0; len(l.turns) < h.Turns; r++ {
		b := byName[rowName(rowTurns, r)]
		want := min(turnsPerRow, h.Turns-len(l.turns))
		if len(b) < want*turnBytes {
			return errRows
		}
		for ; want > 0; want, b = want-1, b[turnBytes:] {
			var x identity
			settings := b[copy(x.digest[:], b):]
			x.settings = dialect.Key(binary.LittleEndian.Uint64(settings))
			l.addTurn(x, measure.Seq(binary.LittleEndian.Uint64(settings[8:])), binary.LittleEndian.Uint32(settings[20:]))
			l.turns[len(l.turns)-1].input = binary.LittleEndian.Uint32(settings[16:])
		}
	}
	for r := 0; len(l.edits) < h.Edits; r++ {
		b := byName[rowName(rowEdits, r)]
		want := min(editsPerRow, h.Edits-len(l.edits))
		if len(b) < want*editBytes {
			return errRows
		}
		for ; want > 0; want, b = want-1, b[editBytes:] {
			le := binary.LittleEndian
			m := editRecord{entry: le.Uint32(b), gen: le.Uint32(b[4:]), units: le.Uint32(b[8:]), lines: le.Uint16(b[12:]), op: measure.Op(b[14])}
			if int(m.entry) >= h.Entries || int(m.gen) > len(h.Generations) {
				return errRows
			}
			l.edits = append(l.edits, m)
		}
	}
	for i, g := range h.Generations {
		if g.From < 0 || g.From > int64(i) {
			return errRows
		}
	}
	for _, s := range h.Hidden {
		if s.Gen < 1 || s.Gen > int64(len(h.Generations)) {
			return errRows
		}
	}
	if h.CompactedTo < 0 || h.CompactedTo > h.Entries {
		return errRows
	}
	return nil
}

// messagesOf is the number of messages of the turn at an index, with those that have no entries: see
// [dialect.Message.Hidden].
func (l *Ledger) messagesOf(i int) uint32 {
	if i == 0 {
		return l.turns[i].end
	}
	return l.turns[i].end - l.turns[i-1].end
}

// entryBytes is the size of a stored entry.
const entryBytes = 5*8 + 11*4 + 4*2 + 4

func appendEntry(b []byte, e *measure.Entry) []byte {
	le := binary.LittleEndian
	for _, v := range []uint64{uint64(e.Seq), uint64(e.Call), uint64(e.Tool), uint64(e.Path), uint64(e.Variant)} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range []uint32{e.Turn, e.Index, e.Part, e.Parts, e.Text, e.JSON, uint32(e.Images) | uint32(e.Documents)<<16, e.Base, e.Bytes, e.Ceiling} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{e.PathUnits, e.PathBase, e.Lines} {
		b = le.AppendUint16(b, v)
	}
	b = append(b, byte(e.Kind), byte(e.Role), byte(e.Flags), byte(e.Op))
	return le.AppendUint16(le.AppendUint32(b, e.Extent), e.Pages)
}

func readEntries(b []byte) ([]measure.Entry, error) {
	if len(b)%entryBytes != 0 {
		return nil, errRows
	}
	out := make([]measure.Entry, 0, len(b)/entryBytes)
	le := binary.LittleEndian
	for ; len(b) > 0; b = b[entryBytes:] {
		u64 := func(i int) uint64 { return le.Uint64(b[8*i:]) }
		u32 := func(i int) uint32 { return le.Uint32(b[40+4*i:]) }
		out = append(out, measure.Entry{
			Seq: measure.Seq(u64(0)), Call: dialect.Key(u64(1)), Tool: dialect.Key(u64(2)), Path: dialect.Key(u64(3)), Variant: dialect.Key(u64(4)),
			Turn: u32(0), Index: u32(1), Part: u32(2), Parts: u32(3), Text: u32(4), JSON: u32(5), Images: uint16(u32(6)), Documents: uint16(u32(6) >> 16),
			Base: u32(7), Bytes: u32(8), Ceiling: u32(9),
			PathUnits: le.Uint16(b[80:]), PathBase: le.Uint16(b[82:]), Lines: le.Uint16(b[84:]),
			Kind: measure.Kind(b[86]), Role: measure.Role(b[87]), Flags: measure.Flags(b[88]), Op: measure.Op(b[89]),
			Extent: le.Uint32(b[90:]), Pages: le.Uint16(b[94:]),
		})
	}
	return out, nil
}
