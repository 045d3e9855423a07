package partition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/events/validate"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/syncs"
)

// syncCounts is what syncs did.
type syncCounts struct {
	Syncs, Prefixes, Needed, Adopted, Branches, Replaced, Late, LostAnswers, Crashed, Nested, Refused, Others, Compared, Compacted, Undone, Slid, Alike, Named, Families, Fitted, Held int
}

// errUnserved is the answer of a worker that has ended.
var errUnserved = &events.ServiceError{V: events.Version, Code: events.CodeUnavailable, Message: "the worker has ended"}

var errPending = events.NewInvalid(events.CodeTurnPending, "", "the turn was not decided in time")

// syncRefusals are the answers that a sync may get instead of parts.
var syncRefusals = []events.Code{
	events.CodeUnavailable, events.CodeOtherHistory, events.CodeDiverged, events.CodeEditedView, events.CodeStaleBase, events.CodeTurnPending,
	events.CodeUnknownGeneration,
}

// caller is a client of one session: its history, and what it remembers of answers.
type caller struct {
	a         *agent
	name      string
	remembers bool
	onDiverge events.Divergence
	branch    string
	groups    [][]events.Raw // its history, so that no call is parted from its result
	made      int            // messages so far
	prefix    *events.SyncPrefix
	view      string
	busy      bool           // it awaits an answer
	base      []events.Raw   // what the first group was made of, where it is a view that was answered
	former    [][]events.Raw // what the history was before it was last changed
	volatile  string         // where a message is another one in each call: "", middle or tail
	syncs     int
	sent      []events.Raw // the history as it was then
}

// answered is what a sync was answered.
type answered struct {
	caller  *caller
	address events.Address
	out     *events.SyncResponse
	applied []events.Raw // what the parts give
	tail    []events.Raw // of the history, that the session did not have
	last    []events.Raw // the same, where the answer does not count it: the history begins with a view
	refused bool         // it may be late with what follows a refused call alone: without a tail
	held    bool
}

// newSyncSimulation is a simulation with sessions of which all turns are those of syncs.
func newSyncSimulation(seed uint64, f flaw) *simulation {
	s := newSimulation(seed, f)
	s.grows = false
	s.table, s.transforms, s.current, s.disks = partitions.New(1), []int{1}, s.current[:1], s.disks[:1] // of branches too
	s.lineages, s.eventBytes, s.explicit = map[string]map[[sha256.Size]byte]bool{}, 1<<20, map[string]bool{}
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
		if s.odds(25) {
			a.callers = a.callers[:1]
			a.callers[0].volatile = []string{"middle", "tail"}[s.IntN(2)]
		}
		s.agents = append(s.agents, a)
	}
	return s
}

// flat is the history of the caller.
func (c *caller) flat() []events.Raw { return slices.Concat(c.groups...) }

// now is the history with the message that is another one in each call.
func (c *caller) now() []events.Raw {
	flat := c.flat()
	m := events.Raw(fmt.Sprintf(`{"role":"user","content":"it is call %d of %s:"}`, c.syncs, c.name))
	switch c.syncs++; {
	case c.volatile == "middle" && c.base == nil:
		flat = slices.Insert(flat, min(1, len(flat)), m)
	case c.volatile == "tail":
		flat = append(flat, m)
	}
	return flat
}

// lineage is the history without views of compactd.
func (c *caller) lineage() []events.Raw {
	if c.base == nil {
		return c.flat()
	}
	return slices.Concat(c.base, slices.Concat(c.groups[1:]...))
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
		if other := c.a.callers[s.IntN(len(c.a.callers))]; other != c && other.base == nil {
			c.leave()
			c.keep(0)
			c.groups = slices.Clone(other.groups)
		}
	case n < 84:
		c.undo()
	case n < 87: // it keeps only the newest messages
		if k := 1 + s.IntN(3); k < len(c.groups) && c.base == nil {
			s.synced.Slid++
			c.groups, c.prefix = slices.Clone(c.groups[k:]), nil
			c.add(1)
		}
	case n < 90: // a sub-agent with the same end as another caller, or a compaction of its own
		if other := c.a.callers[s.IntN(len(c.a.callers))]; len(other.groups) > 1 && other.base == nil {
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
	if c.former = nil; c.base == nil {
		c.former = c.groups
	}
}

// undo undoes the last change of the history: two lineages that are used in turn.
func (c *caller) undo() {
	if c.former == nil || c.base != nil {
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
		c.base = nil
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
		var list []events.Raw
		if err := events.Unmarshal([]byte("["+m+"]"), &list); err != nil {
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
func seen(m events.Raw) events.Raw { return events.OpenAI.Sendable(events.OpenAI.Record(m, 1)) }

// register notes each beginning of a history as one that a session may have.
func (s *simulation) register(session string, history []events.Raw) {
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
func (s *simulation) isLineage(session string, history []events.Raw) bool {
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

// sync has the history answered by a worker, and looks at the answer.
func (c *caller) sync() {
	s := c.a.s
	flat := c.now()
	s.register(c.a.address.Session, flat)
	s.register(c.a.address.Session, c.lineage())
	wait := int64(s.IntN(2) * 1000)
	in := &events.SyncRequest{
		About: c.a.address.About(), Branch: c.branch, Format: events.OpenAI, Messages: flat,
		Model:        &events.Model{Provider: "openai", Name: "m", ContextWindow: int64(c.a.window), MaxOutputTokens: int64(c.a.window / 5)},
		OnDivergence: c.onDiverge, WaitMS: &wait, DryRun: s.odds(8),
	}
	if c.volatile != "" && c.prefix != nil && (int(c.prefix.Count) > len(flat) || !sameMessages(c.sent[:c.prefix.Count], flat[:c.prefix.Count])) {
		c.prefix = nil
	}
	c.sent = flat
	if c.remembers && c.prefix != nil {
		in.Prefix, in.Messages = c.prefix, flat[c.prefix.Count:]
		if s.flaw == prefixLonger && len(in.Messages) > 1 {
			in.Messages = in.Messages[1:]
		}
		s.synced.Prefixes++
	}
	if c.remembers && c.view != "" && s.odds(40) {
		in.Usage = &events.SyncUsage{View: c.view, Count: []int64{0, int64(len(flat)), int64(s.IntN(len(flat) + 1))}[s.IntN(3)], Raw: fmt.Appendf(nil, `{"input_tokens":%d}`, 1+s.IntN(c.a.window))}
	}
	if c.view != "" && s.odds(4) {
		in.Refused = &events.SyncRefused{View: c.view, Status: 400, Error: fmt.Appendf(nil, `"prompt is too long: %d tokens > %d maximum"`, c.a.window+50, c.a.window)}
	}
	o := c.worker()
	if o == nil {
		return
	}
	s.synced.Syncs++
	out, err := o.answerSync(c, in)
	if err != nil {
		c.failed(err)
		return
	}
	if s.odds(10) {
		s.synced.LostAnswers++
		return
	}
	if out.Need == events.NeedAll {
		s.synced.Needed++
		c.prefix = nil
		if in.Prefix == nil {
			s.violated("%s: need all of a whole history", c.name)
		}
		return
	}
	c.receive(in, out, flat)
	if !in.DryRun && out.Session == "" && s.odds(30) {
		c.compare(o, out, flat)
	}
}

// worker is the one that the caller reaches: sometimes one that has not noticed that it was
// replaced.
func (c *caller) worker() *owner {
	s := c.a.s
	if len(s.zombies) > 0 && s.odds(8) {
		if z := s.zombies[s.IntN(len(s.zombies))]; z.partition == s.table.Of(c.a.address) {
			return z
		}
	}
	p := s.table.Of(c.a.address)
	if s.current[p] == nil {
		s.takeOver(p)
	}
	return s.current[p]
}

func syncCode(err error) events.Code {
	if e, ok := errors.AsType[*events.ServiceError](err); ok {
		return e.Code
	}
	return events.CodeOf(err)
}

// failed looks at a refusal.
func (c *caller) failed(err error) {
	s, code := c.a.s, syncCode(err)
	s.note("%s: %v", c.name, err)
	switch {
	case !slices.Contains(syncRefusals, code):
		s.violated("%s: sync: %w", c.name, err)
	case (code == events.CodeOtherHistory || code == events.CodeDiverged) && c.onDiverge != events.DivergeRefuse:
		s.violated("%s: on_diverge %s is answered %s", c.name, c.onDiverge, code)
	case code == events.CodeOtherHistory:
		s.synced.Others++
	case code == events.CodeDiverged, code == events.CodeEditedView:
		s.synced.Refused++
	}
}

// receive applies an answer.
func (c *caller) receive(in *events.SyncRequest, out *events.SyncResponse, flat []events.Raw) {
	s := c.a.s
	if err := wantCovered(out.Parts, len(flat)); err != nil {
		s.violated("%s: %w", c.name, err)
		return
	}
	applied := align.Apply(flat, out.Parts)
	for _, m := range applied {
		if events.OpenAI.Dialect().Refers(m) {
			s.violated("%s is sent a reference: %s", c.name, m)
		}
	}
	c.ownOnly(flat, applied)
	has := func(code events.Code) bool {
		return slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == code })
	}
	if in.Refused != nil && !in.DryRun && out.View == in.Refused.View {
		s.violated("%s: the view %s was refused, and is given again", c.name, out.View)
	}
	if exceeded := out.Code == events.CodeBudgetExceeded; exceeded != (out.Retry != nil) || exceeded != has(events.CodeBudgetExceeded) || exceeded && out.Budget.WithinBudget && in.Refused == nil { // a provider may refuse what we think fits
		s.violated("%s: code %q, retry %v, %+v", c.name, out.Code, out.Retry, out.Budget)
	}
	late := has(events.CodeLate)
	if late {
		s.synced.Late++
	}
	if out.Session != "" && out.Session != in.Address().Session {
		s.synced.Branches++
		if out.Branch != "" && events.BranchID(in.Address().Session, out.Branch) != out.Session {
			s.violated("%s: %s is no branch %s of %s", c.name, out.Session, out.Branch, in.Address().Session)
		}
	}
	if !out.Recorded {
		s.synced.Fitted++
		if bad := validate.Messages(events.OpenAI, applied); len(bad) > 0 {
			s.violated("%s: %v in %s", c.name, bad, applied)
		}
		if !has(events.CodeBudgetExceeded) && !out.Budget.WithinBudget || out.Count > 0 {
			s.violated("%s: an answer that is not recorded: %+v", c.name, out)
		}
		c.prefix = nil
		if c.view = out.View; in.DryRun {
			c.view = ""
		}
		return
	}
	if unchanged := !out.Changed && late; unchanged {
		return
	}
	tail, last := flat[len(flat):], flat[len(flat):]
	switch {
	case in.DryRun || late || out.Turns < out.Through.Turn:
		tail = flat[min(int(out.Known), len(flat)):]
	case out.Count > 0 && int(out.Count) < len(flat):
		tail = flat[out.Count:]
		s.synced.Held++
	case out.Count == 0 && c.volatile == "tail":
		last = flat[len(flat)-1:]
	}
	address := in.Address()
	if out.Session != "" {
		address.Session = out.Session
	}
	s.note("%s: %d of %s, generation %d through %+v, known %d, %d parts", c.name, len(flat), address.Session, out.Generation, out.Through, out.Known, len(out.Parts))
	s.answers = append(s.answers, &answered{caller: c, address: address, out: out, applied: applied, tail: tail, last: last, refused: in.Refused != nil && late})
	if out.Changed {
		s.synced.Compacted++
	}
	if in.DryRun || late {
		return
	}
	c.view, c.prefix = out.View, nil
	if out.Count > 0 && out.Session == "" {
		c.prefix = &events.SyncPrefix{Count: out.Count, Hash: out.Hash}
	}
	if c.volatile == "" && out.Changed && out.Session == "" && out.Turns == out.Through.Turn && s.odds(10) { // it goes on with what it was answered
		s.synced.Adopted++
		c.base = c.lineage()
		c.groups, c.prefix = [][]events.Raw{applied}, nil
	}
}

// wantCovered checks that the ranges of parts cover n messages once, in order.
func wantCovered(parts []events.SyncPart, n int) error {
	at := int64(0)
	for _, p := range parts {
		r := events.SyncRange{at, at}
		switch {
		case p.Keep != nil:
			r = *p.Keep
		case p.Drop != nil:
			r = *p.Drop
		case p.Edit != nil:
			r = events.SyncRange{*p.Edit, *p.Edit + 1}
		case p.StandsFor != nil:
			r = *p.StandsFor
		}
		if r[0] != at || r[1] < r[0] {
			return fmt.Errorf("a part is of %v, after %d", r, at)
		}
		at = r[1]
	}
	if at != int64(n) {
		return fmt.Errorf("the parts end at %d of %d", at, n)
	}
	return nil
}

// ownOnly checks that a caller is sent nothing of another one whose messages it does not have.
func (c *caller) ownOnly(flat, applied []events.Raw) {
	s := c.a.s
	have, given := bytes.Join(asBytes(append(c.lineage(), flat...)), nil), bytes.Join(asBytes(applied), nil)
	for _, a := range s.agents {
		for _, other := range a.callers {
			sign := []byte(other.name + ":")
			if other != c && bytes.Contains(given, sign) && !bytes.Contains(have, sign) {
				s.violated("%s is sent messages of %s: %s", c.name, other.name, given)
			}
		}
	}
}

func sameMessages(a, b []events.Raw) bool {
	return slices.EqualFunc(a, b, func(x, y events.Raw) bool { return bytes.Equal(seen(x), seen(y)) })
}

func asBytes(list []events.Raw) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// compare requests the same again while nothing else happens: with the prefix, and of a worker
// that remembers nothing. All must be the same.
func (c *caller) compare(o *owner, out *events.SyncResponse, flat []events.Raw) {
	s := c.a.s
	s.alone = true
	defer func() { s.alone = false }()
	none := int64(0)
	whole := events.SyncRequest{
		About: c.a.address.About(), Branch: c.branch, Format: events.OpenAI, Messages: flat, DryRun: true,
		WaitMS: &none, OnDivergence: events.DivergeRefuse,
	}
	o.syncer = nil
	first, err := o.answerSync(c, &whole)
	if err != nil || first.Hash != out.Hash || out.Count != int64(len(flat)) || len(first.Warnings) > 0 {
		return // it moved since
	}
	rest := whole
	rest.Prefix, rest.Messages = &events.SyncPrefix{Count: out.Count, Hash: out.Hash}, []events.Raw{}
	second, err := o.answerSync(c, &rest)
	if err != nil {
		return
	}
	s.synced.Compared++
	if second.Need != "" {
		s.violated("%s: the prefix %d of %s is not known at once", c.name, out.Count, out.Hash)
		return
	}
	for _, other := range []*events.SyncResponse{first, second} {
		if err := wantCovered(other.Parts, len(flat)); err != nil {
			s.violated("%s: %w", c.name, err)
			return
		}
	}
	x, y := align.Apply(flat, first.Parts), align.Apply(flat, second.Parts)
	if first.View != second.View || !sameMessages(x, y) {
		s.violated("%s: with a prefix the answer is\n%s\nwithout\n%s", c.name, y, x)
	}
}

// answerSync has a worker answer, unless one sync of the session is in the midst of it.
func (o *owner) answerSync(c *caller, in *events.SyncRequest) (*events.SyncResponse, error) {
	if o.syncer == nil {
		o.syncer = syncs.New(&simulatedHost{o: o}, o.set.Compaction)
		o.busy = map[events.Address]bool{}
	}
	data, err := in.Encode()
	if err == nil {
		in, err = events.DecodeSyncRequest(data)
	}
	if err != nil {
		return nil, err
	}
	a := in.Address()
	if o.s.flaw == otherTaken && in.OnDivergence == events.DivergeAuto {
		in.OnDivergence = events.DivergeReplace
	}
	if o.ended || !in.DryRun && o.busy[a] {
		return nil, errUnserved
	}
	if !in.DryRun {
		o.busy[a] = true
		defer delete(o.busy, a)
	}
	outer, dry := o.asking, o.dry
	o.asking, o.dry = c, in.DryRun
	defer func() { o.asking, o.dry = outer, dry }()
	return o.syncer.Answer(context.Background(), in)
}

// simulatedHost is an owner as syncs see it. Between any two of its calls other things happen,
// and it may crash.
type simulatedHost struct{ o *owner }

// simulatedFamily is the log as an owner sees it that passes an event on to branches.
type simulatedFamily struct{ o *owner }

func (f simulatedFamily) branches(_ context.Context, a events.Address, before compaction.Seq) (out []string, err error) {
	if f.o.s.flaw == branchGoesOn {
		return nil, nil
	}
	for _, e := range f.o.s.log[:before-1] {
		if e.Kind == events.KindBranch && e.Address == a {
			b, err := events.DecodeBranch(e.Data)
			if err != nil {
				return nil, err
			}
			out = append(out, b.Branch)
		}
	}
	return out, nil
}

func (f simulatedFamily) publish(_ context.Context, k events.Kind, a events.Address, id string, body any) error {
	if f.o.s.odds(5) {
		f.o.crash("while it passes an event on to branches")
		return errUnserved
	}
	if k == events.KindBranch && f.o.s.flaw == branchUnnamed {
		return nil
	}
	data, err := events.Marshal(body)
	if err == nil {
		f.o.s.publish(k, a, id, data)
	}
	return err
}

func (h *simulatedHost) between() error {
	s, c, dry := h.o.s, h.o.asking, h.o.dry
	switch {
	case h.o.ended:
		return errUnserved
	case s.alone || s.found != nil:
		return nil //nolint:nilerr // the seed has failed: nothing more happens
	case s.odds(2):
		s.synced.Crashed++
		h.o.crash("while it syncs")
		return errUnserved
	case s.depth < 2 && s.odds(20):
		s.synced.Nested++
		s.depth++
		s.step()
		s.depth--
	}
	h.o.asking, h.o.dry = c, dry
	if h.o.ended {
		return errUnserved
	}
	return nil
}

func (h *simulatedHost) Inspect(a events.Address, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	l, err := h.o.ledgers.decider.Ledger(a)
	if err != nil {
		return nil, err
	}
	read(l)
	at := h.o.ledgers.position().seq
	return func(context.Context) error { return h.committed(at) }, nil
}

// committed commits up to an event.
func (h *simulatedHost) committed(at compaction.Seq) error {
	for h.o.committed < at && h.o.s.flaw != uncommittedAnswered {
		if err := h.between(); err != nil {
			return err
		}
		if h.o.commit(h.o.queued()); h.o.ended {
			return errUnserved
		}
	}
	return nil
}

// text is an event of the log.
func (h *simulatedHost) text(a events.Address, seq compaction.Seq) ([]events.Message, error) {
	s := h.o.s
	if int(seq) > len(s.log) || s.log[seq-1].Address != a {
		return nil, errUnserved // the log lost it
	}
	e := s.log[seq-1]
	return payload.Texts(e.Kind, e.Data)
}

func (h *simulatedHost) Turn(_ context.Context, a events.Address, seq compaction.Seq) ([]events.Message, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	return h.text(a, seq)
}

func (h *simulatedHost) Sourced(_ context.Context, a events.Address, v *compaction.View, own func(compaction.Seq) []events.Message) ([]compaction.Sourced, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	if h.o.s.flaw == formerView {
		if l, err := h.o.ledgers.decider.Ledger(a); err == nil && l.Generation() > 0 {
			v = l.ViewAt(l.Generation() - 1)
		}
	}
	messages := map[compaction.Seq][]events.Message{}
	for _, seq := range v.Seqs() {
		if messages[seq] = own(seq); messages[seq] == nil {
			var err error
			if messages[seq], err = h.text(a, seq); err != nil {
				return nil, err
			}
		}
	}
	return compaction.RenderSourced(v, func(seq compaction.Seq) ([]events.Message, error) { return messages[seq], nil })
}

// baseOf finds the base of a turn in its payload.
var baseOf = regexp.MustCompile(`"expect":\{[^}]*\},|,"expect":\{[^}]*\}`)

// turnOf finds the number of a turn.
var turnOf = regexp.MustCompile(`"turn":\d+,`)

func (h *simulatedHost) Publish(_ context.Context, k events.Kind, a events.Address, id string, body []byte) (uint64, error) {
	s := h.o.s
	if err := h.between(); err != nil {
		return 0, err
	}
	if h.o.dry {
		s.violated("a dry run publishes %s", body)
	}
	if k == events.KindTurn && s.flaw == baseLeftOut {
		body = baseOf.ReplaceAll(body, nil)
	}
	s.publish(k, a, id, body)
	if k == events.KindTurn && bytes.Contains(body, []byte(`"replaces_from"`)) {
		s.synced.Replaced++
		s.explicit[id] = s.explicit[id] || h.o.asking.onDiverge == events.DivergeReplace
		if on := h.o.asking.onDiverge; on == events.DivergeRefuse || on == events.DivergeBranch {
			s.violated("%s: on_diverge %s retracts: %s", h.o.asking.name, on, body)
		}
	}
	if s.flaw == retryAppended && k == events.KindTurn && s.odds(10) {
		l, err := h.o.ledgers.decider.Ledger(a)
		if err != nil {
			return 0, err
		}
		again := turnOf.ReplaceAll(baseOf.ReplaceAll(body, nil), fmt.Appendf(nil, `"turn":%d,`, l.LastTurn()+2))
		s.publish(k, a, id+"-again", again)
	}
	at := -1
	for i, e := range slices.Backward(s.log) {
		if e.ID == id && e.Address == a {
			at = i
			break
		}
	}
	if at < 0 {
		return 0, errUnserved // a power loss in between
	}
	if err := h.between(); err != nil { // it is stored, and the worker does not notice
		return 0, err
	}
	return uint64(at + 1), nil
}

func (h *simulatedHost) MaxBytes() int { return h.o.s.eventBytes }

func (h *simulatedHost) AwaitDecided(_ context.Context, _ events.Address, w events.Await) error {
	for range 6 {
		if h.o.s.odds(5) {
			break
		}
		if err := h.between(); err != nil {
			return err
		}
		if uint64(h.o.ledgers.position().seq) >= w.Seq {
			return nil
		}
		h.o.read(1 + h.o.s.IntN(4))
	}
	return errPending
}

func (h *simulatedHost) Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	a, s := in.Address(), h.o.s
	out := &events.OutcomeResponse{V: events.Version, Seq: in.Seq, Accepted: true}
	committed, err := h.Inspect(a, func(l *compaction.Ledger) { out.Generation, out.Through = l.Generation(), l.Through() })
	if err == nil {
		err = committed(ctx)
	}
	if err != nil || out.Through.Seq == in.Seq {
		return out, err
	}
	if in.Seq > uint64(len(s.log)) {
		return nil, errUnserved // the log lost it
	}
	cause := events.CauseOf(in.Seq, s.log[in.Seq-1].Data)
	for _, c := range slices.Backward(s.outcomes) {
		if c.partition != h.o.partition || c.cause != compaction.Seq(in.Seq) || c.address != a {
			continue
		}
		if body, err := events.DecodeOutcome(c.kind, c.data); err != nil || !events.Answers(body).Is(cause) {
			continue
		}
		switch c.kind {
		case events.KindRejected:
			var r events.Rejected
			if err := events.Unmarshal(c.data, &r); err != nil {
				return nil, err
			}
			out.Accepted, out.Code, out.Message, out.Hint = !events.Codes[r.Code].Rejects, r.Code, r.Message, r.Hint
			return out, nil
		case events.KindCompacted:
			var b events.Compacted
			if err := events.Unmarshal(c.data, &b); err != nil {
				return nil, err
			}
			entry := b.Entry(0)
			out.Compaction = &entry
			return out, nil
		}
	}
	return out, nil
}

func (h *simulatedHost) Sync(_ context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	return h.o.answerSync(h.o.asking, in)
}

func (h *simulatedHost) Await(context.Context, <-chan struct{}) error {
	if h.o.s.odds(30) {
		return errPending
	}
	return h.between()
}

// holdAnswers looks which answers are what a ledger gives, behind an event.
func (s *simulation) holdAnswers(d *decide.Decider, a events.Address) error {
	for _, x := range s.answers {
		if x.held || x.address != a || x.out.Through.Turn == 0 {
			continue
		}
		l, err := d.Ledger(a)
		if err != nil {
			return err
		}
		if l.Through() != x.out.Through {
			continue
		}
		view := l.View()
		if x.out.Turns < l.LastTurn() {
			view = l.ViewThrough(x.out.Generation, x.out.Turns)
		} else if l.Generation() != x.out.Generation {
			continue
		}
		known := s.render(view)
		want := slices.Concat(known, x.tail)
		if x.held = sameMessages(want, x.applied) || sameMessages(slices.Concat(known, x.last), x.applied) || x.refused && sameMessages(known, x.applied); !x.held {
			s.note("at %+v %s was to be sent\n%s\nand is sent\n%s", l.Through(), x.caller.name, want, x.applied)
		}
	}
	return nil
}

// unheld is an error if the parts of an answer gave no history that its session ever had.
func (s *simulation) unheld() error {
	for _, x := range s.answers {
		if !x.held && x.out.Through.Turn > 0 {
			return fmt.Errorf("%s: no history of %s is what the answer at %+v, generation %d, gives:\n%s",
				x.caller.name, x.address.Session, x.out.Through, x.out.Generation, x.applied)
		}
	}
	return nil
}

// former is what a session was before an event.
type former struct {
	messages  []events.Raw
	chain     []events.Link
	retracted []compaction.Retracted
}

func formerOf(d *decide.Decider, e decide.Event, b *book) (x former, err error) {
	l, err := d.Ledger(e.Address)
	if err == nil && b != nil {
		x.messages, x.chain, x.retracted = b.messages(), l.Chain(), l.Retracted()
	}
	return x, err
}

// wantLineage checks that a session has a history that one caller had, and that it became another
// one by request alone: its first message stays, and what it remembers as retracted takes its
// place back from no call.
func (s *simulation) wantLineage(e decide.Event, was former, now []events.Raw) error {
	root := rootOf(e.Address.Session)
	switch {
	case s.lineages[root] == nil: // its agent publishes turns
		return nil
	case !s.isLineage(root, now):
		return fmt.Errorf("%s has a history that no caller had:\n%s", e.Address.Session, now)
	}
	if s.explicit[e.ID] || len(was.messages) == 0 || len(now) == 0 || e.Kind != events.KindTurn {
		return nil
	}
	if events.OpenAI.DigestOf(was.messages[:1]) != events.OpenAI.DigestOf(now[:1]) {
		return fmt.Errorf("%s began with\n%s\nand begins with\n%s", e.Address.Session, was.messages[0], now[0])
	}
	for _, r := range was.retracted {
		from, n := -1, int(r.Messages)
		for i := range was.chain {
			if i == 0 && r.Base == (events.Digest{}) {
				from = 0
			}
			if was.chain[i].Whole == r.Base {
				from = int(was.chain[i].End)
			}
		}
		begins := func(list []events.Raw) bool {
			return from >= 0 && len(list) >= from+n && events.OpenAI.DigestOf(list[from:from+n]) == r.First
		}
		if begins(now) && !begins(was.messages) && len(was.messages) >= from+n {
			return fmt.Errorf("%s: a lineage that came back took the place of another one:\n%s", e.Address.Session, e.Data)
		}
	}
	return nil
}

// wantFamilies checks that the log names each branch, and that branches end with their session.
func (s *simulation) wantFamilies(forks []decide.Event, parents map[compaction.Seq]events.Address) error {
	if s.counts.EventsLost > 0 {
		return nil
	}
	after := func(e decide.Event, k events.Kind, a events.Address, names string) bool {
		return slices.ContainsFunc(s.log[e.Seq:], func(x decide.Event) bool {
			return x.Kind == k && x.Address == a && (names == "" || bytes.Contains(x.Data, []byte(`"`+names+`"`)))
		})
	}
	for _, e := range forks {
		s.synced.Named++
		if !after(e, events.KindBranch, parents[e.Seq], e.Address.Session) {
			return fmt.Errorf("event %d: the log does not name %s as a branch of %s", e.Seq, e.Address.Session, parents[e.Seq].Session)
		}
	}
	for _, m := range s.log {
		if m.Kind != events.KindBranch {
			continue
		}
		b, err := events.DecodeBranch(m.Data)
		if err != nil {
			return err
		}
		child := events.Address{Tenant: m.Address.Tenant, Session: b.Branch}
		for _, e := range s.log[m.Seq:] {
			if e.Kind != events.KindEnd || e.Address != m.Address {
				continue
			}
			s.synced.Families++
			if !after(e, events.KindEnd, child, "") {
				return fmt.Errorf("event %d: %s ends, and its branch %s does not", e.Seq, e.Address.Session, b.Branch)
			}
		}
	}
	return nil
}
