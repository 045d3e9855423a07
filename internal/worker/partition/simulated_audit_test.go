package partition

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/redecide"
)

// audit derives everything again from the log alone, and compares.
func (s *simulation) audit() error {
	s.counts.Seeds, s.counts.Sessions, s.counts.Events = 1, len(s.agents), len(s.log)
	t, records := s.known(), make([]record, len(s.current))
	for p := range records {
		var err error
		if records[p], err = s.read(p); err != nil {
			return err
		}
	}
	for root := range s.transforms[0] {
		if err := s.rederive(root, t, records); err != nil {
			return err
		}
	}
	if err := s.unheld(); err != nil {
		return err
	}
	if err := s.wantErased(); err != nil {
		return err
	}
	return s.found
}

// record is what OUTCOMES has of a partition: outcomes by event, and the configs of events.
type record struct {
	published map[measure.Seq][]commitment
	configs   []string
}

// read lists what OUTCOMES holds about each event of a partition, and the config it
// was decided under: that of the commit that passes it. Commits follow each other,
// and each has the outcomes of the events it passes.
func (s *simulation) read(p int) (record, error) {
	published, configs := map[measure.Seq][]commitment{}, make([]string, 1, len(s.log)+1)
	var cursor, kept uint64 // of the last marker, and of the last one that is not overwritten
	var open []commitment
	for _, c := range s.outcomes {
		if c.partition != p {
			continue
		}
		if len(open) > 0 && open[0].commit != c.commit {
			return record{}, errors.New("a commit is stored in part")
		}
		if c.kind != "" {
			open = append(open, c)
		}
		if c.marker == nil {
			continue
		}
		if c.marker.Cursor < cursor {
			// the later ones are overwritten, and the outcomes behind them are lost
			erased := s.shortened && c.marker.Cursor >= kept
			if !s.rolledBack(p, c.marker.Cursor) && !erased || c.kind != "" {
				return record{}, fmt.Errorf("the marker went back from %d to %d", cursor, c.marker.Cursor)
			}
			maps.DeleteFunc(published, func(seq measure.Seq, _ []commitment) bool { return uint64(seq) > c.marker.Cursor })
			configs = configs[:c.marker.Cursor+1]
		}
		if !c.gone {
			kept = c.marker.Cursor
		}
		for seq := cursor + 1; seq <= c.marker.Cursor; seq++ {
			configs = append(configs[:seq], c.marker.Config)
		}
		for _, o := range open {
			if o.kind == events.KindErased { // it follows from no event
				continue
			}
			if uint64(o.cause) <= cursor || uint64(o.cause) > c.marker.Cursor {
				return record{}, fmt.Errorf("an outcome of event %d is in a commit from %d to %d", o.cause, cursor, c.marker.Cursor)
			}
			published[o.cause] = append(published[o.cause], o)
		}
		cursor, open = c.marker.Cursor, nil
	}
	if cursor < uint64(len(s.log)) {
		configs = append(configs, make([]string, uint64(len(s.log))-cursor)...) // perhaps of another partition
	}
	return record{published, configs}, nil
}

// rolledBack reports whether a marker may be moved back to an event: where the log was truncated, or to the beginning of a
// partition where it was truncated below that.
func (s *simulation) rolledBack(p int, cursor uint64) bool {
	l := s.table.Lineage(p)
	if len(l) == 0 || s.known().Lineage(p)[len(l)-1].First != cursor+1 {
		return s.lost[cursor]
	}
	for keep := range s.lost {
		if keep <= cursor {
			return true
		}
	}
	return false
}

// rederive decides a partition, and those that were split off, again in one go, with the config that was in force
// at each event, in the partition that the table has for it. The published outcomes must be those that result, each disk what the
// ledgers were at its position, and the ledgers hold every turn once, in order.
func (s *simulation) rederive(root int, t partitions.Table, records []record) error {
	d := decide.New(nil)
	books := map[events.Address]*book{}
	var forks []decide.Event
	parents := map[measure.Seq]events.Address{}
	for _, e := range s.log {
		p := t.At(e.Address, uint64(e.Seq))
		if p%s.transforms[0] != root {
			continue
		}
		if d.Config = configNamed(records[p].configs[e.Seq]); d.Config == nil {
			return fmt.Errorf("event %d was never committed", e.Seq)
		}
		was, err := formerOf(d, e, books[e.Address])
		if err != nil {
			return err
		}
		outs, text := d.Process(e)
		if f := d.ForkedBy(e); f != nil {
			forks = append(forks, e)
			parents[e.Seq] = events.Address{Tenant: e.Address.Tenant, Session: f.Session}
		}
		if text {
			s.texts[e.Seq] = e
		}
		if err := s.compare(e, outs, records[p].published[e.Seq]); err != nil && !s.torn[e.Address] {
			return err
		}
		delete(records[p].published, e.Seq)
		if err := s.compareDisks(p, t, e.Seq, d); err != nil {
			return err
		}
		if books[e.Address] == nil {
			books[e.Address] = &book{}
		}
		books[e.Address].enter(e)
		if s.lineages == nil {
			continue
		}
		if err := s.wantLineage(e, was, books[e.Address].messages()); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if err := s.holdAnswers(d, e.Address); err != nil {
			return err
		}
	}
	for p := root; p < len(records); p += s.transforms[0] {
		for seq := range records[p].published {
			return fmt.Errorf("partition %d published about event %d, which is of partition %d", p, seq, t.At(s.log[seq-1].Address, uint64(seq)))
		}
		if o := s.current[p]; o != nil {
			if err := o.disk.others(p, t); err != nil {
				return err
			}
		}
	}
	if err := s.wantFamilies(forks, parents); err != nil {
		return err
	}
	for _, a := range s.agents {
		if b := books[a.address]; b != nil && !s.torn[a.address] {
			if err := s.original(d, a.address, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare checks what was published about an event against what follows from the log.
func (s *simulation) compare(e decide.Event, outs []compaction.Outcome, published []commitment) error {
	if len(outs) != len(published) {
		return fmt.Errorf("event %d (%s) has %d outcomes, of which %d were published", e.Seq, e.Kind, len(outs), len(published))
	}
	for i, o := range outs {
		want, err := redecide.OmittedAs(o, published[i].data)
		if err != nil {
			return err
		}
		if want == nil {
			want = s.body(o)
		}
		if o.Kind != published[i].kind || !bytes.Equal(want, published[i].data) {
			return fmt.Errorf("event %d (%s): published\n%s\nfrom the log follows\n%s", e.Seq, e.Kind, published[i].data, want)
		}
	}
	return nil
}

// compareDisks checks the disks of a partition that are at an event. A disk that has passed a split may have what
// is to be dropped.
func (s *simulation) compareDisks(p int, t partitions.Table, seq measure.Seq, d *decide.Decider) error {
	disks := slices.Clone(s.disks[p])
	if o := s.current[p]; o != nil {
		disks = append(disks, o.disk)
	}
	for _, disk := range append(disks, s.copies[p]) {
		if disk != nil && disk.at.Cursor == uint64(seq) && disk.fits(s.log, nil, seq) {
			if err := disk.compare(d, func(a events.Address) bool { return t.At(a, uint64(seq)+1) == p && !s.torn[a] }); err != nil {
				return fmt.Errorf("disk of partition %d at %d: %w", p, seq, err)
			}
		}
	}
	return nil
}

// others is an error if a disk has a session of another partition.
func (d *simulatedDisk) others(p int, t partitions.Table) error {
	for a := range d.rows {
		if of := t.Of(a); of != p && t.At(a, d.at.Cursor+1) != p && d.at.Cursor > 0 {
			return fmt.Errorf("%s of partition %d is on the disk of %d, at %d", a, of, p, d.at.Cursor)
		}
	}
	return nil
}

// compare checks the rows of a disk against the ledgers of its own sessions.
func (d *simulatedDisk) compare(at *decide.Decider, own func(events.Address) bool) error {
	for a, rows := range d.rows {
		if k := at.Cache[a]; own(a) && (k == nil || k.Ledger == nil) {
			return fmt.Errorf("%s is stored, and has no ledger", a)
		}
		if len(rows) == 0 {
			return fmt.Errorf("%s has no rows", a)
		}
	}
	for a, k := range at.Cache {
		if k.Ledger == nil || !own(a) {
			continue
		}
		rows, err := stored.Rows(k.Ledger)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !bytes.Equal(d.rows[a][r.Name], r.Data) {
				return fmt.Errorf("%s: row %s is\n%q, not\n%q", a, r.Name, d.rows[a][r.Name], r.Data)
			}
		}
	}
	return nil
}

// original compares the history as it was published with the view of generation 0.
func (s *simulation) original(d *decide.Decider, a events.Address, b *book) error {
	l, err := d.Ledger(a)
	if err != nil {
		return err
	}
	var want []codec.Raw
	for _, t := range b.turns {
		want = append(want, t.Messages...)
	}
	if l.LastTurn() != int64(len(b.turns)) {
		return fmt.Errorf("%s has %d turns, %d were published", a, l.LastTurn(), len(b.turns))
	}
	if len(want) == 0 {
		return nil
	}
	if got := s.render(l.ViewAt(0)); !slices.EqualFunc(got, want, func(x, y codec.Raw) bool { return bytes.Equal(x, y) }) {
		return fmt.Errorf("%s: the originals are\n%s\nnot\n%s", a, got, want)
	}
	return nil
}

// book keeps the turns of a session by the rules of the wire contract, in the
// simplest way there is.
type book struct {
	turns  []page
	parked map[int64]page
}

type page struct {
	ID       string         `json:"id"`
	Turn     int64          `json:"turn"`
	From     int64          `json:"replaces_from"`
	Messages []codec.Raw    `json:"messages"`
	Expect   *events.Expect `json:"expect"`
	data     []byte
}

func (b *book) enter(e decide.Event) {
	if e.Kind == events.KindEnd && len(b.turns) > 0 || e.Kind == events.KindForget {
		*b = book{}
	}
	p := page{data: e.Data}
	if e.Kind != events.KindTurn || bytes.Contains(e.Data, malformed) {
		return
	}
	if err := codec.Unmarshal(e.Data, &p); err != nil {
		panic(err) // not what the agents of the simulation publish
	}
	next := int64(len(b.turns)) + 1
	switch {
	case p.Turn < next && p.From == 0, p.Turn < next && bytes.Equal(b.turns[p.Turn-1].data, p.data):
		return // there already, or another one is
	case p.Expect != nil && *p.Expect != b.base():
		return // other turns came before it
	case p.From > 0:
		if other, ok := b.parked[p.Turn]; p.From > next || ok && bytes.Equal(other.data, p.data) {
			return
		}
		b.turns = b.turns[:p.From-1]
		for n := range b.parked {
			if n >= p.From {
				delete(b.parked, n)
			}
		}
	case p.Turn > next:
		if b.parked == nil {
			b.parked = map[int64]page{}
		}
		if _, ok := b.parked[p.Turn]; !ok {
			b.parked[p.Turn] = p
		}
		return
	}
	b.turns = append(b.turns, p)
	for {
		n := int64(len(b.turns)) + 1
		p, ok := b.parked[n]
		if !ok {
			return
		}
		delete(b.parked, n)
		b.turns = append(b.turns, p)
	}
}

// base is what a turn that names its base must expect.
func (b *book) base() events.Expect {
	x := events.Expect{Turn: int64(len(b.turns))}
	for _, t := range b.turns {
		x.Digest = x.Digest.With(events.OpenAI.DigestOf(t.Messages), len(t.Messages))
	}
	return x
}

// messages are those of all turns.
func (b *book) messages() []codec.Raw {
	var out []codec.Raw
	for _, t := range b.turns {
		out = append(out, t.Messages...)
	}
	return out
}

func configNamed(hash string) *compaction.Config {
	for _, c := range simulatedConfigs() {
		if c.Hash() == hash {
			return c
		}
	}
	return nil
}

// storedAt is when the log stored an event.
func storedAt(e *decide.Event) time.Time { return time.UnixMilli(e.Time) }
