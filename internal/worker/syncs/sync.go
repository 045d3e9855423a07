package syncs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"compactd/internal/align"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

const (
	// syncWait is the most that a sync waits by default for its turn, and refusedWait for
	// the history that fits.
	syncWait    = 500 * time.Millisecond
	refusedWait = 5 * time.Second
	// resultPause is how long a refused call waits between two looks at its result.
	resultPause = 20 * time.Millisecond
	// maxStale is how often a sync begins again when another turn came before its own.
	maxStale = 3
)

// errStale: another turn came before the one of a sync.
var errStale = events.NewInvalid(events.CodeStaleBase, "", "other turns of the session came first in every try")

// Host is the worker that serves a session. Publish returns the sequence of the first event with an
// id.
type Host interface {
	// Inspect shows a ledger to read, and returns a function that waits until all it rests on is
	// committed. read must not keep the ledger.
	Inspect(a events.Address, read func(*compaction.Ledger)) (committed func(context.Context) error, err error)
	// Turn and Sourced are those of [payload.Renderer].
	Turn(ctx context.Context, a events.Address, seq compaction.Seq) ([]events.Message, error)
	Sourced(ctx context.Context, a events.Address, v *compaction.View, own func(compaction.Seq) []events.Message) ([]compaction.Sourced, error)
	Publish(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (seq uint64, err error)
	MaxBytes() int // of an event
	// AwaitDecided waits until an event is decided. The code turn_pending: the wait timed out.
	AwaitDecided(ctx context.Context, a events.Address, w events.Await) error
	Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error)
	// Sync passes a sync about another session to the worker that serves it.
	Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error)
	// Await waits until done is closed, and gives its processor to others meanwhile.
	Await(ctx context.Context, done <-chan struct{}) error
}

// Syncer answers syncs about the sessions of a host, one of a session at a time.
type Syncer struct {
	host   Host
	config func() *compaction.Config // in force
	locks  locks
	stable stability
	heads  heads
	views  views
	given  given
	late   late
}

// New returns a syncer. c is the config in force.
func New(h Host, c func() *compaction.Config) *Syncer { return &Syncer{host: h, config: c} }

// state is what a sync needs of a ledger.
type state struct {
	chain      []events.Link
	format     events.Format
	settings   compaction.Settings
	generation int64
	through    int64 // of the generation, 0 where it is not known
	budget     events.Budget
	raised     bool // its window is above that of its model, as calls showed
	last       events.Through
	retracted  []compaction.Retracted
	branched   uint64 // the event that named the last branch; 0 for none
}

// base is the session as it is.
func (st *state) base() (x events.Expect) {
	if n := len(st.chain); n > 0 {
		x = events.Expect{Turn: int64(n), Digest: st.chain[n-1].Whole}
	}
	return x
}

// wholeAt is the digest of the first turns.
func (st *state) wholeAt(turns int) events.Digest {
	if turns == 0 {
		return events.Digest{}
	}
	return st.chain[turns-1].Whole
}

// stateOf reads the ledger of a session, and waits until all that it rests on is committed.
func (s *Syncer) stateOf(ctx context.Context, a events.Address) (*state, error) {
	st := &state{}
	committed, err := s.host.Inspect(a, func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		st.budget = l.Describe(s.config()).Budget
		st.raised = l.WindowRaised()
		st.chain, st.format, st.settings = l.Chain(), l.Format(), l.Settings()
		st.generation, st.last = l.Generation(), l.Through()
		st.through = l.GenerationThrough(st.generation)
		st.retracted, st.branched = l.Retracted(), uint64(l.Branched())
	})
	if err != nil {
		return nil, err
	}
	return st, committed(ctx)
}

// request is one sync.
type request struct {
	*Syncer
	in       *events.SyncRequest
	address  events.Address
	deadline time.Time
	history  *align.History
	known    align.Known
	format   events.Format
	warnings []events.SyncWarning
	recorded int64                // messages that the session had before
	until    int                  // index from which on nothing is published: the end is another one each time
	pending  *events.SyncRefused  // the refusal that is to be published; nil for none, or once it is
	refused  string               // the view that the provider refused, "" for none
	tried    *events.HistoryEntry // what that led to
	shorter  int64                // our estimate of a history that ends before the session, 0 for any other
	raised   bool                 // the window is above that of the model, as calls showed
	ended    uint64               // a turn that began the session, before it ended and is to begin again
	gave     givenAt
	sent     undecided // by publish
}

// Answer takes the history of an agent, and states what of it to send.
func (s *Syncer) Answer(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	wait := syncWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	x := &request{Syncer: s, in: in, address: in.Address(), deadline: time.Now().Add(wait)}
	if !in.DryRun { // which publishes nothing; a branch requests it of its parent
		release, err := s.locks.hold(ctx, x.address, s.host.Await)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := x.awaitLate(ctx); err != nil {
		return nil, err
	}
	if r := in.Refused; r != nil && !in.DryRun {
		x.pending, x.refused = r, r.View
	}
	for try := 0; ; try++ {
		x.warnings = nil
		st, err := s.stateOf(ctx, x.address)
		if err != nil {
			return nil, err
		}
		if len(st.chain) == 0 {
			x.heads.drop(x.address)
		}
		ended := x.ended
		x.reserve(st)
		unknown := x.unknownModel(st)
		out, err := x.attempt(ctx, st)
		if errors.Is(err, errStale) && (try < maxStale || x.ended > ended) {
			continue
		}
		if err == nil && out.Need == "" && out.Session == "" {
			out, err = x.freeze(ctx, st, out)
		}
		if err == nil && !in.DryRun && x.gave.whole != (events.Digest{}) {
			x.given.put(x.address, x.gave)
		}
		if unknown != "" && err == nil && out.Need == "" && out.Session == "" {
			out.Warnings = append(out.Warnings, events.WarningOf(events.CodeUnknownModel, unknown))
		}
		if err == nil && out.Session == "" {
			x.finish(out)
		}
		return out, err
	}
}

// needAll is the answer to a request whose prefix is not known here.
func needAll(st *state) *events.SyncResponse {
	return &events.SyncResponse{
		V: events.Version, Need: events.NeedAll, Recorded: true, Generation: st.generation, Through: st.last, Budget: st.budget, Warnings: []events.SyncWarning{},
	}
}

func (r *request) warn(code events.Code, detail string) {
	r.warnings = append(r.warnings, events.WarningOf(code, detail))
}

// unknownModel is a text about a model that is new to the session and whose window is a guess; ""
// for any other model.
func (r *request) unknownModel(st *state) string {
	now, m, override := &st.settings, r.in.Model, r.in.Policy
	switch {
	case m == nil && len(st.chain) == 0:
		m = &now.Model
	case m == nil, len(st.chain) > 0 && *m == now.Model:
		return ""
	}
	if override == nil {
		override = now.Policy
	}
	return r.config().UnknownModel(r.address.Tenant, override, m)
}

// reserve removes from the model a longest answer that would leave no room in its window.
func (r *request) reserve(st *state) {
	override := r.in.Policy
	if override == nil {
		override = st.settings.Policy
	}
	if m := r.config().Reserved(r.address.Tenant, override, r.in.Model); m != r.in.Model {
		in := *r.in
		in.Model, r.in = m, &in
	}
}

// attempt compares the history with the session, publishes what is new, and answers.
func (r *request) attempt(ctx context.Context, st *state) (*events.SyncResponse, error) {
	in := r.in
	r.format = cmp.Or(in.Format, st.format, events.DefaultFormat(in.Model))
	if st.format != "" && r.format != st.format {
		return r.translated(ctx, st)
	}
	before, err := 0, error(nil)
	if in.Prefix != nil {
		before = int(in.Prefix.Count)
	}
	r.history = align.Read(r.format, in.Messages, before)
	r.until = r.history.Len()
	if before > 0 {
		var ok bool
		if r.known, ok = r.history.MatchPrefix(st.chain, in.Prefix.Hash); ok {
			ok, err = r.fitsPrefix(st)
		}
		if !ok || err != nil || in.Frozen > 0 || in.Form == events.FormMessages && r.known.Shift > 0 {
			return needAll(st), err
		}
	} else {
		if r.known, _, err = r.sameCalls(st, r.history.Match(st.chain)); err != nil {
			return nil, err
		}
	}
	t := unpublished{from: 0, at: r.known.At}
	if diverged := r.known.Turns < len(st.chain) && r.known.At < r.history.Len(); diverged {
		to, out, err := r.diverge(ctx, st)
		if out != nil || err != nil {
			return out, err
		}
		t = to
	}
	if err := limit.Of(ctx).Yield(ctx); err != nil {
		return nil, err
	}
	return r.record(ctx, st, t)
}

// record publishes what is new, and answers.
func (r *request) record(ctx context.Context, st *state, t unpublished) (*events.SyncResponse, error) {
	r.recorded = int64(t.at)
	if r.in.DryRun {
		return r.answer(ctx, st, t.at)
	}
	r.heads.went(r.address)
	if t.from == 0 && r.known.Turns < len(st.chain) {
		return r.behind(ctx, st, t.at)
	}
	if err := r.refuseHere(ctx, st); err != nil {
		return nil, err
	}
	r.until = r.stable.until(r.address, r.history, t.at)
	last, err := r.publish(ctx, st, t)
	if large, ok := errors.AsType[*events.Invalid](err); ok && large.Code() == events.CodeTooLarge {
		r.warn(events.CodeTooLarge, err.Error()) // a message that no turn has room for, without its media
		return r.fit(ctx, st)
	}
	if errors.Is(err, errUndecided) {
		r.warn(events.CodeLate, "")
		return r.fit(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	if last == nil { // the session has it all
		return r.answerUntil(ctx, st)
	}
	decided, err := r.await(ctx, last)
	r.late.put(r.address, r.sent, err == nil && decided == nil)
	if err != nil {
		return nil, err
	}
	if decided == nil {
		r.warn(events.CodeLate, "")
		if t.from > 0 { // the history does not begin with the session's
			return r.keepAll(st, last), nil
		}
		out, err := r.answer(ctx, st, t.at)
		if err == nil {
			out.Count, out.Hash, r.gave.whole = int64(r.until), last.whole, last.whole
		}
		return out, err
	}
	if len(st.chain) == 0 { // the refused call was made without an answer
		if err := r.refuseHere(ctx, decided); err != nil {
			return nil, err
		}
	}
	r.known.Turns, r.known.At = int(last.number), r.until
	return r.answerUntil(ctx, decided)
}

// translated answers a history in another dialect than the session's: it counts as one with another
// root.
func (r *request) translated(ctx context.Context, st *state) (*events.SyncResponse, error) {
	r.history = align.Read(r.format, r.in.Messages, 0)
	r.until = r.history.Len()
	r.known = align.Known{At: r.history.Lead, Shift: r.history.Lead}
	on := r.in.OnDivergence
	switch {
	case r.in.Prefix != nil:
		return needAll(st), nil
	case on == events.DivergeRefuse || r.history.Lead == r.history.Len():
		return nil, events.NewInvalid(events.CodeFormatChanged, "format", "is not "+string(st.format)+", that of the session")
	case on == events.DivergeBranch:
		return r.branch(ctx, st, r.history.Lead)
	case on == events.DivergeReplace && r.in.DryRun:
		return r.fit(ctx, st)
	case on == events.DivergeReplace:
		return r.record(ctx, st, unpublished{1, r.history.Lead, r.history.Lead})
	}
	return r.lineage(ctx, st, r.history.Lead, true)
}

// unpublished is the part of a history to publish: the messages from at on, as turns from the
// number from on, 0 for the next. A turn ends at stable, so that only the rest is retracted when it
// changes.
type unpublished struct {
	from   int64
	at     int
	stable int
}

// diverge decides about a history that differs from the session's. An answer or an error ends the
// sync.
func (r *request) diverge(ctx context.Context, st *state) (t unpublished, out *events.SyncResponse, err error) {
	made, err := r.matchViews(ctx, st)
	if err != nil {
		return t, nil, err
	}
	if r.known.Turns == len(st.chain) || r.known.At == r.history.Len() {
		return unpublished{from: 0, at: r.known.At}, nil, nil
	}
	turn, err := r.textsOf(ctx, st, r.known.Turns)
	if err != nil {
		return t, nil, err
	}
	at := r.known.At + r.history.Common(r.known.At, turn)
	if at == r.history.Len() { // it ends within a turn: as a history that ends before the session
		return unpublished{from: 0, at: r.known.At}, nil, nil
	}
	t = unpublished{int64(r.known.Turns) + 1, r.known.At, at}
	on, root := r.in.OnDivergence, at == r.history.Lead && r.history.Before == 0
	edited, err := r.hasMade(ctx, st, made)
	if err != nil {
		return t, nil, err
	}
	switch {
	case edited && on != events.DivergeRefuse:
		out, err = r.branch(ctx, st, at)
		if err == nil {
			r.warn(events.CodeEditedView, "")
			out.Warnings = append(out.Warnings, r.warnings...)
		}
		return t, out, err
	case edited:
		return t, nil, events.NewInvalid(events.CodeEditedView, "messages", "have messages of compactd that were changed")
	case on == events.DivergeBranch:
		out, err = r.branch(ctx, st, at)
		return t, out, err
	case on == events.DivergeRefuse && root:
		return t, nil, events.NewInvalid(events.CodeOtherHistory, "messages", "have nothing in common with those of the session")
	case on == events.DivergeRefuse:
		return t, nil, events.NewInvalid(events.CodeDiverged, "messages", fmt.Sprintf("differ from those of the session from index %d on", at))
	case on == events.DivergeAuto:
		if out, err = r.lineage(ctx, st, at, root); out != nil || err != nil {
			return t, out, err
		}
	}
	if !r.in.DryRun && r.stable.differs(r.address, r.history, at, r.known.Index(int(st.chain[len(st.chain)-1].End))) {
		detail := fmt.Sprintf("It is message %d.", at)
		if i := at - r.known.At; i < len(turn) {
			detail = fmt.Sprintf("It is member %q of message %d.", align.Member(turn[i], r.history.At(at)), at)
		}
		r.warn(events.CodeUnstableHistory, detail)
		out, err = r.fit(ctx, st)
		return t, out, err
	}
	return t, nil, nil
}

// matchViews compares the history with the views of earlier answers. If it begins with none of
// them, the messages that compactd made in them are returned.
func (r *request) matchViews(ctx context.Context, st *state) (made []madeMessage, err error) {
	if r.history.Before > 0 {
		return nil, nil
	}
	views, err := r.viewsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if k, ok := r.history.MatchView(st.chain, v.View); ok {
			if k, ok, err = r.sameCalls(st, k); ok || err != nil {
				r.known = k
				return nil, err
			}
		}
		made = append(made, v.made...)
	}
	return made, nil
}

// hasMade reports whether the history has one of the messages that compactd made. A message of
// which compactd changed only ids of calls does not count if the session has it too.
func (r *request) hasMade(ctx context.Context, st *state, made []madeMessage) (bool, error) {
	if len(made) == 0 {
		return false, nil
	}
	have := r.history.Digests()
	for _, m := range made {
		d := r.format.DigestOf([]events.Raw{m.raw})
		if !have[d] {
			continue
		}
		if m.of.Turn == 0 || m.of.Turn > int64(len(st.chain)) {
			return true, nil
		}
		turn, err := r.textsOf(ctx, st, int(m.of.Turn-1))
		if err != nil {
			return false, err
		}
		if i := m.of.Index; i >= int64(len(turn)) || r.format.DigestOf(turn[i:i+1]) != d {
			return true, nil
		}
		delete(have, d) // read once
	}
	return false, nil
}

// textsOf reads the messages of a turn from the log, nil where it is gone.
func (r *request) textsOf(ctx context.Context, st *state, turn int) ([]events.Raw, error) {
	read, err := r.host.Turn(ctx, r.address, compaction.Seq(st.chain[turn].Seq))
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]events.Raw, len(read))
	for i := range read {
		out[i] = read[i].Raw
	}
	return out, nil
}

// other passes a sync to another session.
func (r *request) other(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := r.host.Sync(ctx, in)
	if err == nil {
		at := in.Address().Session
		if id := out.Session; id == "" || id == at {
			out.Session, out.Branch = at, in.Branch
		} else if out.Branch = in.Branch + "/" + out.Branch; events.BranchID(in.Session, out.Branch) != id {
			out.Branch = "" // too long for a name
		}
	}
	return out, err
}

// locks serialize the syncs of one session.
type locks struct {
	mu   sync.Mutex
	held map[events.Address]chan struct{}
}

// hold waits for the lock with await, which needs no processor: the holder may need one.
func (l *locks) hold(ctx context.Context, a events.Address, await func(context.Context, <-chan struct{}) error) (release func(), err error) {
	for {
		l.mu.Lock()
		if l.held == nil {
			l.held = map[events.Address]chan struct{}{}
		}
		done, busy := l.held[a]
		if !busy {
			mine := make(chan struct{})
			l.held[a] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, a)
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		if err := await(ctx, done); err != nil {
			return nil, err
		}
	}
}
