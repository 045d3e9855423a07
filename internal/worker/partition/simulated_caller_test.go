package partition

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
)

// syncCounts is what syncs did.
type syncCounts struct {
	Syncs, Prefixes, Needed, Adopted, Branches, Replaced, Late, LostAnswers, Crashed, Nested, Refused, Others, Compared, Compacted, Undone, Slid, Alike, Named, Families, Fitted, Held, Wrong, Grown int
}

// errUnserved is the answer of a worker that has ended.
var errUnserved = &events.ServiceError{V: events.Version, Code: events.CodeUnavailable, Message: "the worker has ended"}

var errPending = events.NewInvalid(events.CodeTurnPending, "", "the turn was not decided in time")

// syncRefusals are the answers that a sync may get instead of parts.
var syncRefusals = []events.Code{
	events.CodeUnavailable, events.CodeOtherHistory, events.CodeDiverged, events.CodeEditedView, events.CodeStaleBase, events.CodeTurnPending,
	events.CodeUnknownGeneration, events.CodeWrongPartition,
}

// caller is a client of one session: its history, and what it remembers of answers.
type caller struct {
	a         *agent
	name      string
	remembers bool
	onDiverge events.Divergence
	branch    string
	groups    [][]codec.Raw // its history, so that no call is parted from its result
	made      int           // messages so far
	prefix    *events.SyncPrefix
	view      string
	busy      bool          // it awaits an answer
	bases     [][]codec.Raw // what the first group may stand for in the session, where it is a view that was answered
	former    [][]codec.Raw // what the history was before it was last changed
	volatile  string        // where a message is another one in each call: "", middle or tail
	syncs     int
	sent      []codec.Raw // the history as it was then
}

// answered is what a sync was answered.
type answered struct {
	caller  *caller
	address events.Address
	out     *events.SyncResponse
	applied []codec.Raw // what the parts give
	tail    []codec.Raw // of the history, that the session did not have
	last    []codec.Raw // the same, where the answer does not count it: the history begins with a view
	refused bool        // it may be late with what follows a refused call alone: without a tail
	held    bool
}

// newSyncSimulation is a simulation with sessions of which all turns are those of syncs.
func newSyncSimulation(seed uint64, f flaw) *simulation {
	s := newSimulation(seed, f)
	s.erases = false
	s.table, s.transforms, s.current, s.disks, s.copies = partitions.New(1), []int{1}, s.current[:1], s.disks[:1], s.copies[:1]
	s.lineages, s.eventBytes, s.explicit, s.through = map[string]map[[sha256.Size]byte]bool{}, 1<<20, map[string]bool{}, map[string]uint64{}
	if s.odds(30) {
		s.eventBytes = 16<<10 + 800 // histories are cut into several turns
	}
	s.agents = s.agents[:1]
	for i := range 1 + s.IntN(2) {
		a := newAgent(s, fmt.Sprintf("c%d", i))
		for j := range 1 + s.IntN(3) {
			c := &caller{a: a, name: fmt.Sprintf("c%d%c", i, 'a'+j), remembers: s.odds(50)}
			c.onDiverge = []events.Divergence{events.DivergeAuto, events.DivergeAuto, events.DivergeAuto, events.DivergeReplace, events.DivergeBranch, events.DivergeRefuse}[s.IntN(6)]
			if j > 0 && s.odds(30) {
				c.branch = "sub"
			}
			a.callers = append(a.callers, c)
		}
		if s.odds(40) {
			a.callers = a.callers[:1]
			a.callers[0].volatile = []string{"middle", "tail"}[s.IntN(2)]
		}
		s.agents = append(s.agents, a)
	}
	return s
}

// flat is the history of the caller.
func (c *caller) flat() []codec.Raw { return slices.Concat(c.groups...) }

// now is the history with the message that is another one in each call.
func (c *caller) now() []codec.Raw {
	flat := c.flat()
	m := codec.Raw(fmt.Sprintf(`{"role":"user","content":"it is call %d of %s:"}`, c.syncs, c.name))
	switch c.syncs++; {
	case c.volatile == "middle" && c.bases == nil:
		flat = slices.Insert(flat, min(1, len(flat)), m)
	case c.volatile == "tail":
		flat = append(flat, m)
	}
	return flat
}

// lineages are what the session may have for the history: it without views of compactd, and where the log has lost what a
// view was made of, the view that was recorded in place of that.
func (c *caller) lineages() (out [][]codec.Raw) {
	if c.bases == nil {
		return [][]codec.Raw{c.flat()}
	}
	for _, b := range c.bases {
		out = append(out, slices.Concat(b, slices.Concat(c.groups[1:]...)))
	}
	return out
}

// step is what an agent does between two calls: it goes on, goes back, changes what it had,
// loses its memory or copies another one; and then it syncs.
func (c *caller) step() {
	s := c.a.s
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	switch n := s.IntN(100); {
	case len(c.groups) == 0 || n < 55 || c.volatile != "" && n < 90:
		c.add(1 + s.IntN(3))
	case n < 62:
		c.leave()
		c.keep(s.IntN(len(c.groups)))
		c.add(1)
	case n < 67:
		c.leave()
		i := s.IntN(len(c.groups))
		after := c.groups[i+1:]
		c.keep(i)
		c.add(1)
		c.groups = append(c.groups, after...)
	case n < 76: // it was started again
		c.prefix, c.view = nil, ""
	case n < 79:
		if other := c.a.callers[s.IntN(len(c.a.callers))]; other != c && other.bases == nil {
			c.leave()
			c.keep(0)
			c.groups = slices.Clone(other.groups)
		}
	case n < 84:
		c.undo()
	case n < 87: // it keeps only the newest messages
		if k := 1 + s.IntN(3); k < len(c.groups) && c.bases == nil {
			s.synced.Slid++
			c.groups, c.prefix = slices.Clone(c.groups[k:]), nil
			c.add(1)
		}
	case n < 90: // a sub-agent with the same end as another caller, or a compaction of its own
		if other := c.a.callers[s.IntN(len(c.a.callers))]; len(other.groups) > 1 && other.bases == nil {
			s.synced.Alike++
			end := slices.Clone(other.groups[len(other.groups)-1:])
			c.leave()
			c.keep(0)
			c.add(1)
			c.groups, c.prefix = append(c.groups, end...), nil
		}
	} // else it did not receive the answer, and sends the same again
	if len(c.groups) > 0 {
		c.sync()
	}
}

// leave remembers the history before it is changed.
func (c *caller) leave() {
	if c.former = nil; c.bases == nil {
		c.former = c.groups
	}
}

// undo undoes the last change of the history: two lineages that are used in turn.
func (c *caller) undo() {
	if c.former == nil || c.bases != nil {
		return
	}
	c.a.s.synced.Undone++
	c.groups, c.former = c.former, c.groups
	c.prefix = nil
	if c.a.s.odds(50) {
		c.groups = slices.Clip(c.groups)
		c.add(1)
	}
}

// keep leaves so many groups.
func (c *caller) keep(n int) {
	c.groups = slices.Clone(c.groups[:n])
	if n == 0 {
		c.bases = nil
	}
	if c.prefix != nil && int(c.prefix.Count) > len(c.flat()) {
		c.prefix = nil
	}
}

// add appends messages with an id of their own.
func (c *caller) add(groups int) {
	for range groups {
		c.made++
		id := fmt.Sprintf("%s:%d;", c.name, c.made)
		m, _ := c.a.messages(id)
		if c.made%16 == 9 {
			m = c.picture(id)
		}
		if len(c.groups) == 0 { // calls of two callers may be the same content; a history begins with a prompt
			m = fmt.Sprintf(`{"role":"user","content":%q}`, c.a.text(id))
		}
		var list []codec.Raw
		if err := codec.Unmarshal([]byte("["+m+"]"), &list); err != nil {
			panic(err)
		}
		c.groups = append(c.groups, list)
	}
}

// picture is a message with an image that is recorded by its hash, where the largest event is
// small or the image large.
func (c *caller) picture(id string) string {
	size := len(id) * 1000
	if c.a.s.eventBytes == 1<<20 {
		size = events.MaxTurnBytes / 14
	}
	data := sha256.Sum256([]byte(id))
	picture := base64.StdEncoding.EncodeToString(bytes.Repeat(data[:30], size/30))
	return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`, id, picture)
}

// seen is a message with placeholders for its media: a caller has what the log has not.
func seen(m codec.Raw) codec.Raw { return events.OpenAI.Sendable(events.OpenAI.Record(m, 1)) }

// register notes each beginning of a history as one that a session may have.
func (s *simulation) register(session string, history []codec.Raw) {
	known := s.lineages[session]
	if known == nil {
		known = map[[sha256.Size]byte]bool{}
		s.lineages[session] = known
	}
	sum := [sha256.Size]byte{}
	for _, m := range history {
		sum = sha256.Sum256(append(sum[:], seen(m)...))
		known[sum] = true
	}
}

// isLineage reports whether a caller of a session had a history that begins so.
func (s *simulation) isLineage(session string, history []codec.Raw) bool {
	sum := [sha256.Size]byte{}
	for _, m := range history {
		sum = sha256.Sum256(append(sum[:], seen(m)...))
	}
	return len(history) == 0 || s.lineages[session][sum]
}

// rootOf is the session that a branch was made of, or the session.
func rootOf(session string) string {
	root, _, _ := strings.Cut(events.SessionName(session), "/")
	return root
}
