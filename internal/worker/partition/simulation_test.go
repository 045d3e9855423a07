package partition

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
)

// simulation follows from a seed: agents that publish, a log, OUTCOMES with its fence,
// disks, and owners that crash at any point or have not noticed that they were replaced.
// The product's code decides, queues, records and collects; the parts in place of
// NATS, bbolt and goroutines are here.
type simulation struct {
	*rand.Rand
	flaw   flaw
	steps  int
	frail  bool                             // its server loses power
	grows  bool                             // its log does
	erases bool                             // sessions are erased
	trace  func(format string, args ...any) // nil unless it is read

	table      partitions.Table // as SESSIONS has it
	transforms []int            // partitions of the transforms that there were; the last one is in force

	log       []decide.Event
	now       int64
	ids       map[string]int64        // when a message id was stored
	lost      map[uint64]bool         // where the log was once truncated
	gone      map[measure.Seq]bool    // events that are overwritten
	torn      map[events.Address]bool // sessions whose session.forget, or the outcome of it, was lost: they may be erased where no decision is
	shortened bool                    // OUTCOMES lost its last messages
	agents    []*agent

	outcomes []commitment
	commits  int
	current  []*owner // of each partition; nil while it has none
	zombies  []*owner
	disks    [][]*simulatedDisk // of each partition, without those in use
	copies   []*simulatedDisk   // the snapshot of each partition; nil while it has none
	texts    map[measure.Seq]decide.Event

	counts counts

	// of syncs
	synced     syncCounts
	lineages   map[string]map[[sha256.Size]byte]bool // histories that callers had, by session; nil without callers
	explicit   map[string]bool                       // turns of callers that replace, whatever it is
	answers    []*answered
	through    map[string]uint64 // the event that a session was answered as of, at least
	eventBytes int
	formers    int  // syncs about another session that a former owner answered
	depth      int  // of syncs within syncs
	alone      bool // nothing happens between the steps of a sync

	found error // the first violation that the simulation itself finds
}

// counts is what happened, so that a simulation in which nothing happens is
// noticed.
type counts struct {
	Seeds, Sessions, Events, Resent, Outcomes, Compactions, Rewinds, Summaries, Duplicates, Gaps                    int
	Takeovers, Crashes, Replays, Checkpoints, Resumed, Fenced, LostAcks, Evicted, EventsLost, Omitted, Reconfigured int
	Growths, Splits, Children, Stale, Skipped, Unborn, LostBelow, Filled                                            int
	ForgetEvents, Erasures, Overwritten, Repeated, Scrubbed, Moved, Families                                        int
}

// commitment is one message of OUTCOMES.
type commitment struct {
	partition int
	kind      events.Kind // "" for a bare marker
	address   events.Address
	data      []byte
	cause     measure.Seq    // the event it is about
	marker    *commit.Marker // on the last one of a commit
	commit    int
	time      int64 // of its storage
	gone      bool  // it is overwritten
}

// duplicateWindow is how long the log has ids, in milliseconds.
const duplicateWindow = 120_000

func newSimulation(seed uint64, f flaw) *simulation {
	s := &simulation{
		Rand: rand.New(rand.NewPCG(seed, 0)), flaw: f, now: 1_700_000_000_000,
		ids: map[string]int64{}, lost: map[uint64]bool{}, gone: map[measure.Seq]bool{}, torn: map[events.Address]bool{}, texts: map[measure.Seq]decide.Event{},
	}
	n := 1 + s.IntN(4)/3
	s.current, s.disks, s.copies = make([]*owner, n), make([][]*simulatedDisk, n), make([]*simulatedDisk, n)
	s.table, s.transforms = partitions.New(n), []int{n}
	for i := range 1 + s.IntN(5)/2 {
		s.agents = append(s.agents, newAgent(s, fmt.Sprintf("s%d-%d", i, s.IntN(1000))))
	}
	families := rand.New(rand.NewPCG(seed, 1))
	for i, a := range s.agents[1:] {
		kind := families.IntN(4)
		if kind > 1 {
			a.parent = s.agents[i].address.Session
		}
		if kind > 2 {
			a.address.Session = events.BranchID(a.parent, a.address.Session)
		}
	}
	s.frail = s.odds(30)
	s.grows = s.odds(60)
	s.erases = s.odds(60)
	if s.steps = 8 + s.IntN(30); s.frail && s.grows {
		s.steps += 20
	}
	return s
}

// odds is true so many times in a hundred.
func (s *simulation) odds(percent int) bool { return s.IntN(100) < percent }

func (s *simulation) note(format string, args ...any) {
	if s.trace != nil {
		s.trace(format, args...)
	}
}

// run takes some steps, and then ends: every agent has published what it delayed, and the
// last owners have stored all there is.
func (s *simulation) run(steps int) error {
	for range min(steps, s.steps) {
		s.step()
	}
	for _, a := range s.agents {
		a.release()
	}
	for events := -1; s.found == nil && (events < len(s.log) || s.erasing()); {
		events = len(s.log)
		for p := range s.current {
			for n := 0; s.found == nil && s.born(p) && (s.current[p] == nil || !s.current[p].finish()); n++ {
				if s.takeOver(p); n > 1000 {
					s.violated("partition %d is never served to its end", p)
				}
			}
		}
		for _, a := range s.agents {
			a.redeliver()
		}
	}
	if s.found != nil {
		return s.found
	}
	return s.audit()
}

func (s *simulation) step() {
	s.now += int64(s.IntN(3)) * 1000
	switch n := s.IntN(100); {
	case s.frail && s.anySplit() > 1 && s.odds(8):
		s.losePower()
	case s.grows && s.odds(12):
		s.grow()
	case n < 45:
		s.agents[s.IntN(len(s.agents))].step()
	case n < 88:
		p := s.IntN(len(s.current))
		if s.current[p] == nil {
			s.takeOver(p)
		} else {
			s.current[p].step()
		}
	case n < 93:
		if len(s.zombies) > 0 {
			s.zombies[s.IntN(len(s.zombies))].step()
		}
	case n < 96:
		s.takeOver(s.IntN(len(s.current)))
	case n < 99:
		if s.frail {
			s.losePower()
		} else if o := s.current[s.IntN(len(s.current))]; o != nil {
			o.crash("anywhere")
		}
	default:
		s.now += []int64{duplicateWindow, 45 * 60_000}[s.IntN(2)]
	}
}

// publish stores an event, unless the log has its id.
func (s *simulation) publish(k events.Kind, a events.Address, id string, data []byte) {
	if at, ok := s.ids[id]; ok && id != "" && s.now-at < duplicateWindow {
		s.counts.Duplicates++
		return
	}
	s.ids[id] = s.now
	seq := measure.Seq(len(s.log) + 1)
	s.log = append(s.log, decide.Event{
		Location: events.Location{Partition: events.PartitionOf(a, s.transform()), Kind: k, Address: a}, Seq: seq, ID: id, Time: s.now, Data: data,
	})
	s.note("log %d: %s %s %.120s", seq, k, a.Session, data)
}

// last returns the sequence in OUTCOMES of the last message of a partition, 0 for
// none, and that message.
func (s *simulation) last(partition int) (uint64, commitment) {
	for i, c := range slices.Backward(s.outcomes) {
		if c.partition == partition && !c.gone {
			return uint64(i + 1), c
		}
	}
	return 0, commitment{marker: &commit.Marker{}}
}

// store is OUTCOMES taking a commit: all of it, or nothing where the fence does
// not hold.
func (s *simulation) store(partition int, fence uint64, messages []commitment, m commit.Marker, commit int) (uint64, bool) {
	if last, _ := s.last(partition); last != fence && s.flaw != fenceOff {
		return 0, false
	}
	if len(messages) == 0 {
		messages = []commitment{{}}
	}
	for i, c := range messages {
		c.partition, c.commit, c.time = partition, commit, s.now
		if i == len(messages)-1 {
			c.marker = &m
		}
		s.outcomes = append(s.outcomes, c)
		if s.flaw == tornBatch && i < len(messages)-1 && s.odds(20) {
			return 0, false
		}
	}
	s.note("outcomes %d: cursor %d epoch %d of partition %d, %d messages", len(s.outcomes), m.Cursor, m.Epoch, partition, len(messages))
	return uint64(len(s.outcomes)), true
}

// takeOver gives a partition to a new owner: with the disk of one that crashed, with
// a copy as of some time, or with none. The former one may still run.
func (s *simulation) takeOver(p int) {
	if old := s.current[p]; old != nil {
		s.zombies = append(s.zombies, old)
	}
	d := newDisk()
	if n := len(s.disks[p]); n > 0 && s.odds(75) {
		i := s.IntN(n)
		d = s.disks[p][i]
		if s.odds(30) {
			d = d.clone()
		} else {
			s.disks[p] = slices.Delete(s.disks[p], i, i+1)
		}
		d = s.pruned(p, d)
	} else if c := s.copies[p]; c != nil && s.odds(50) {
		d = c.clone()
	}
	if d.at.Cursor == 0 && s.odds(75) {
		d = s.prepared(p, d)
	}
	s.current[p] = newOwner(s, p, s.anyConfig(), d)
	s.counts.Takeovers++
	s.current[p].open()
}

// losePower truncates the log, as a server does that did not sync it, and ends
// with it every owner. Its published outcomes stay published.
func (s *simulation) losePower() {
	for _, o := range append(slices.Clone(s.zombies), s.current...) {
		if o != nil {
			o.crash("with the server")
		}
	}
	most := 8
	if s.grows {
		most = 3 // else few events are before a split
	}
	keep := len(s.log) - s.IntN(min(len(s.log), most)+1)
	if first := s.anySplit(); first > 1 && s.odds(60) {
		keep = min(keep, max(0, int(first)-2-s.IntN(3)))
	}
	s.note("the log loses all but %d of %d events", keep, len(s.log))
	for _, e := range s.log[keep:] {
		delete(s.ids, e.ID)
		delete(s.texts, e.Seq)
		delete(s.gone, e.Seq)
		s.torn[e.Address] = s.torn[e.Address] || e.Kind == events.KindForget
		s.counts.EventsLost++
	}
	s.log, s.lost[uint64(keep)] = s.log[:keep], true
	if s.odds(40) {
		s.loseOutcomes()
	}
	s.answers, s.through = nil, map[string]uint64{} // they may rest on what is lost
	s.now += 1000                                   // no two events of one sequence have the same time
	for p := range s.current {
		if uint64(keep)+1 < s.known().Newest(p).First {
			s.counts.LostBelow++
		}
		for i, d := range s.disks[p] {
			if d.before != nil && s.odds(30) {
				s.disks[p][i] = d.before
			}
		}
		if s.odds(70) { // else agents are back before it
			s.takeOver(p)
		}
	}
}

// loseOutcomes truncates OUTCOMES by some commits. Files that are ahead of it are quarantined.
func (s *simulation) loseOutcomes() {
	for n := s.IntN(5); len(s.outcomes) > 0; {
		last := s.outcomes[len(s.outcomes)-1]
		if last.marker != nil {
			n--
		}
		if n < 0 {
			break
		}
		s.torn[last.address] = s.torn[last.address] || last.kind == events.KindForgotten
		s.outcomes = s.outcomes[:len(s.outcomes)-1]
	}
	s.shortened = true
	s.note("OUTCOMES loses all but %d", len(s.outcomes))
	for p := range s.disks {
		_, last := s.last(p)
		ahead := func(d *simulatedDisk) bool {
			return d != nil && (last.marker == nil || d.at.Cursor > last.marker.Cursor)
		}
		s.disks[p] = slices.DeleteFunc(s.disks[p], ahead)
		for _, d := range s.disks[p] {
			if ahead(d.before) {
				d.before = nil
			}
		}
		if ahead(s.copies[p]) {
			s.copies[p] = nil
		}
	}
}

// violated notes a violation.
func (s *simulation) violated(format string, args ...any) {
	if s.found == nil {
		s.found = fmt.Errorf(format, args...)
	}
}

// simulatedConfigs are what owners run with: each stage has its turn, and each
// estimator.
var simulatedConfigs = sync.OnceValue(func() []*compaction.Config {
	policy := func(set string) *compaction.Config {
		p, err := policy.Default().Set(codec.Raw(set))
		if err != nil {
			panic(err)
		}
		c, err := compaction.NewConfig(p, measure.DefaultWindows())
		if err != nil {
			panic(err)
		}
		return c
	}
	return []*compaction.Config{
		policy(`{}`),
		policy(`{"summarize":{"enabled":false}}`),
		policy(`{"profile":"seed","threshold":0.6,"target":0.4,"info":0.5,"summarize":{"prepare":0.5}}`),
		policy(`{"profile":"blocks","threshold":0.5,"target":0.3,"info":0.4,` +
			`"prune":{"micro":{"enabled":true,"every_turn":true,"from_messages":4,"keep_messages":2,"tools":["read"]}},"summarize":{"prepare":0.4}}`),
	}
})
