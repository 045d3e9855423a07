package partition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/syncing"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/syncs"
)

// syncCounts is what syncs did.
type syncCounts struct {
	Syncs, Prefixes, Needed, Adopted, Branches, Replaced, Late, LostAnswers, Crashed, Nested, Refused, Others, Compared, Compacted int
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
	busy      bool         // it awaits an answer
	base      []events.Raw // what the first group was made of, where it is a view that was answered
}

// answered is what a sync was answered.
type answered struct {
	caller  *caller
	address events.Address
	out     *events.SyncResponse
	applied []events.Raw // what the parts give
	tail    []events.Raw // of the history, that the session did not have
	refused bool         // it may be late with what follows a refused call alone: without a tail
	held    bool
}

// newSyncSimulation is a simulation with sessions of which all turns are those of syncs.
func newSyncSimulation(seed uint64, f flaw) *simulation {
	s := newSimulation(seed, f)
	s.lineages, s.eventBytes = map[string]map[[sha256.Size]byte]bool{}, 1<<20
	if s.odds(30) {
		s.eventBytes = 16<<10 + 800 // histories are cut into several turns
	}
	s.agents = s.agents[:1]
	for i := range 1 + s.IntN(2) {
		a := newAgent(s, i%len(s.current), fmt.Sprintf("c%d", i))
		for j := range 1 + s.IntN(3) {
			c := &caller{a: a, name: fmt.Sprintf("c%d%c", i, 'a'+j), remembers: s.odds(50)}
			c.onDiverge = []events.Divergence{events.DivergeReplace, events.DivergeReplace, events.DivergeBranch, events.DivergeRefuse}[s.IntN(4)]
			if j > 0 && s.odds(30) {
				c.branch = "sub"
			}
			a.callers = append(a.callers, c)
		}
		s.agents = append(s.agents, a)
	}
	return s
}

// flat is the history of the caller.
func (c *caller) flat() []events.Raw { return slices.Concat(c.groups...) }

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
	case len(c.groups) == 0 || n < 55:
		c.add(1 + s.IntN(3))
	case n < 65:
		c.keep(s.IntN(len(c.groups)))
		c.add(1)
	case n < 70:
		i := s.IntN(len(c.groups))
		after := c.groups[i+1:]
		c.keep(i)
		c.add(1)
		c.groups = append(c.groups, after...)
	case n < 76: // it was started again
		c.prefix, c.view = nil, ""
	case n < 79:
		if other := c.a.callers[s.IntN(len(c.a.callers))]; other != c && other.base == nil {
			c.keep(0)
			c.groups = slices.Clone(other.groups)
		}
	} // else it did not receive the answer, and sends the same again
	if len(c.groups) > 0 {
		c.sync()
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

// register notes each beginning of a history as one that a session may have.
func (s *simulation) register(session string, history []events.Raw) {
	known := s.lineages[session]
	if known == nil {
		known = map[[sha256.Size]byte]bool{}
		s.lineages[session] = known
	}
	sum := [sha256.Size]byte{}
	for _, m := range history {
		sum = sha256.Sum256(append(sum[:], m...))
		known[sum] = true
	}
}

// isLineage reports whether a caller of a session had a history that begins so.
func (s *simulation) isLineage(session string, history []events.Raw) bool {
	sum := [sha256.Size]byte{}
	for _, m := range history {
		sum = sha256.Sum256(append(sum[:], m...))
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
	flat := c.flat()
	s.register(c.a.address.Session, flat)
	s.register(c.a.address.Session, c.lineage())
	wait := int64(s.IntN(2) * 1000)
	in := &events.SyncRequest{
		Tenant: c.a.address.Tenant, Session: c.a.address.Session, Branch: c.branch, Format: events.OpenAI, Messages: flat,
		Model:        &events.Model{Provider: "openai", Name: "m", ContextWindow: int64(c.a.window), MaxOutputTokens: int64(c.a.window / 5)},
		OnDivergence: c.onDiverge, WaitMS: &wait, DryRun: s.odds(8),
	}
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
		if z := s.zombies[s.IntN(len(s.zombies))]; z.partition == c.a.partition {
			return z
		}
	}
	if s.current[c.a.partition] == nil {
		s.takeOver(c.a.partition)
	}
	return s.current[c.a.partition]
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
	applied := syncing.Apply(flat, out.Parts)
	c.ownOnly(flat, applied)
	has := func(code events.Code) bool {
		return slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == code })
	}
	if in.Refused != nil && !in.DryRun && out.View == in.Refused.View {
		s.violated("%s: the view %s was refused, and is given again", c.name, out.View)
	}
	if exceeded := out.Code == events.CodeBudgetExceeded; exceeded != (out.Retry != nil) || exceeded != has(events.CodeBudgetExceeded) || exceeded && out.Budget.WithinBudget {
		s.violated("%s: code %q, retry %v, %+v", c.name, out.Code, out.Retry, out.Budget)
	}
	late := has(events.CodeLate)
	if late {
		s.synced.Late++
	}
	if out.Session != "" && out.Session != in.Address().Session {
		s.synced.Branches++
	}
	if native := !out.Changed && (late || has(events.CodeUnstableHistory)); native {
		return
	}
	tail := flat[len(flat):]
	if in.DryRun || late || out.Turns < out.Through.Turn {
		tail = flat[min(int(out.Known), len(flat)):]
	}
	address := in.Address()
	if out.Session != "" {
		address.Session = out.Session
	}
	s.note("%s: %d of %s, generation %d through %+v, known %d, %d parts", c.name, len(flat), address.Session, out.Generation, out.Through, out.Known, len(out.Parts))
	s.answers = append(s.answers, &answered{caller: c, address: address, out: out, applied: applied, tail: tail, refused: in.Refused != nil && late})
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
	if out.Changed && out.Session == "" && out.Turns == out.Through.Turn && s.odds(10) { // it goes on with what it was answered
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
		case p.InPlaceOf != nil:
			r = *p.InPlaceOf
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
	return slices.EqualFunc(a, b, func(x, y events.Raw) bool { return bytes.Equal(x, y) })
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
		Tenant: c.a.address.Tenant, Session: c.a.address.Session, Branch: c.branch, Format: events.OpenAI, Messages: flat, DryRun: true,
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
	x, y := syncing.Apply(flat, first.Parts), syncing.Apply(flat, second.Parts)
	if first.View != second.View || !sameMessages(x, y) {
		s.violated("%s: with a prefix the answer is\n%s\nwithout\n%s", c.name, y, x)
	}
}

// answerSync has a worker answer, unless one sync of the session is in the midst of it.
func (o *owner) answerSync(c *caller, in *events.SyncRequest) (*events.SyncResponse, error) {
	if o.syncer == nil {
		o.syncer = syncs.New(&simulatedHost{o: o}, o.set.config.Compaction)
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
	if own := h.o.asking.flat(); h.o.s.flaw == otherTaken && len(own) > 1 {
		var out []events.Message
		for _, m := range slices.Backward(own) { // in another order it is no beginning of it
			out = append(out, events.Message{Raw: m})
		}
		return out, nil
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
	s.publish(h.o.partition, k, a, id, body)
	if k == events.KindTurn && bytes.Contains(body, []byte(`"replaces_from"`)) {
		s.synced.Replaced++
	}
	if s.flaw == retryAppended && k == events.KindTurn && s.odds(10) {
		l, err := h.o.ledgers.decider.Ledger(a)
		if err != nil {
			return 0, err
		}
		again := turnOf.ReplaceAll(baseOf.ReplaceAll(body, nil), fmt.Appendf(nil, `"turn":%d,`, l.LastTurn()+2))
		s.publish(h.o.partition, k, a, id+"-again", again)
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
	for _, c := range slices.Backward(s.outcomes) {
		if c.partition != h.o.partition || c.cause != compaction.Seq(in.Seq) || c.address != a {
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

func (h *simulatedHost) Pause(context.Context, time.Duration) error {
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
		view, _, _ := l.View()
		if x.out.Turns < l.LastTurn() {
			view = l.ViewThrough(x.out.Generation, x.out.Turns)
		} else if l.Generation() != x.out.Generation {
			continue
		}
		known := s.render(view)
		want := slices.Concat(known, x.tail)
		if x.held = sameMessages(want, x.applied) || x.refused && sameMessages(known, x.applied); !x.held {
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

// wantLineage checks that a session has a history that one caller had, and that no caller took
// it from another.
func (s *simulation) wantLineage(a events.Address, before, now []events.Raw) error {
	if root := rootOf(a.Session); s.lineages[root] != nil && !s.isLineage(root, now) {
		return fmt.Errorf("%s has a history that no caller had:\n%s", a.Session, now)
	}
	if of, by := namesIn(before), namesIn(now); len(of) > 0 && len(by) > 0 && !slices.ContainsFunc(by, func(n string) bool { return slices.Contains(of, n) }) {
		return fmt.Errorf("%s was that of %v, and is that of %v", a.Session, of, by)
	}
	return nil
}

var callerName = regexp.MustCompile(`c\d[a-z]:`)

// namesIn lists whose messages a history has.
func namesIn(history []events.Raw) []string {
	var out []string
	for _, m := range history {
		if n := string(callerName.Find(m)); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
