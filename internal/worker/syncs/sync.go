package syncs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"compactd/internal/align"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/payload"
)

const (
	// syncWait limits by default the wait of a sync for its turn, refusedWait the wait for a
	// shorter history.
	syncWait    = 500 * time.Millisecond
	refusedWait = 5 * time.Second
	// maxStale limits the retries of a sync after concurrent turns.
	maxStale = 3
)

// errStale: another turn came before that of a sync.
var errStale = events.NewInvalid(events.CodeStaleBase, "", "other turns of the session came first in every try")

// Sessions are the sessions that a worker serves. A wait holds no processor.
type Sessions interface {
	// Inspect waits until the event after is decided, if it names one, and calls read with a ledger. Error
	// turn_pending: the wait timed out. committed waits until all events of the ledger are committed. read
	// must not keep the ledger.
	Inspect(ctx context.Context, a events.Address, after events.Await, read func(*compaction.Ledger)) (committed func(context.Context) error, err error)
	// Deliver publishes an event, and returns the sequence of the first one with its id. follows means that
	// the id was made from the content.
	Deliver(ctx context.Context, k events.Kind, a events.Address, id string, body []byte, follows bool) (seq uint64, duplicate bool, err error)
	// ResultOf waits until an event is decided and a compaction that it requested is done. Error turn_pending:
	// the event is not decided in time.
	ResultOf(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error)
	// Sync answers a sync about another session, here or at the worker that serves it.
	Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error)
}

// Config describes a [Syncer]. All fields are required.
type Config struct {
	Compaction func() *compaction.Config // in force
	Texts      *payload.Renderer
	MaxBytes   func() int // of an event
}

// Syncer answers syncs about the sessions of a worker, one of a session at a time.
type Syncer struct {
	sessions Sessions
	config   Config
	locks    locks
	stable   stability
	heads    heads
	seed     maphash.Seed
	views    recent[viewKey, givenView] // that were compared last
	given    recent[events.Address, givenAt]
	late     late
}

// New returns a syncer.
func New(sessions Sessions, c Config) *Syncer {
	s := &Syncer{sessions: sessions, config: c, seed: maphash.MakeSeed()}
	s.views.most, s.given.most, s.late.most = maxViewBytes, maxGivenBytes, maxLateBytes
	return s
}

// state holds the parts of a ledger that a sync needs.
type state struct {
	chain      []events.Link
	format     events.Format
	settings   compaction.Settings
	generation int64
	budget     events.Budget
	raised     bool // calls showed a larger window than that of the model
	untried    bool // it is over the budget: see compaction.Ledger.Untried
	last       events.Through
	retracted  []compaction.Retracted
	branched   uint64 // sequence of the event of the last branch, or 0
}

// base is the session as it is.
func (st *state) base() (x events.Expect) {
	if n := len(st.chain); n > 0 {
		x = events.Expect{Turn: int64(n), Digest: st.chain[n-1].Whole}
	}
	return x
}

// wholeAt returns the digest of the first turns.
func (st *state) wholeAt(turns int) events.Digest {
	if turns == 0 {
		return events.Digest{}
	}
	return st.chain[turns-1].Whole
}

// stateOf reads the ledger of a session, once the event after is decided. committed waits until all events of the
// ledger are committed.
func (s *Syncer) stateOf(ctx context.Context, a events.Address, after events.Await) (st *state, committed func(context.Context) error, err error) {
	st, weight := &state{}, 0
	stored, err := s.sessions.Inspect(ctx, a, after, func(l *compaction.Ledger) {
		weight = l.Weight()
		if !l.HasTurns() {
			return
		}
		st.budget = l.Describe(s.config.Compaction()).Budget
		st.raised, st.untried = l.WindowRaised(), l.Untried() && !st.budget.WithinBudget
		st.chain, st.format, st.settings = l.Chain(), l.Format(), l.Settings()
		st.generation, st.last = l.Generation(), l.Through()
		st.retracted, st.branched = l.Retracted(), uint64(l.Branched())
	})
	return st, func(ctx context.Context) error {
		if err := stored(ctx); err != nil {
			return err
		}
		return limit.Of(ctx).ComputeOver(ctx, weight) // it is compared as a whole
	}, err
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
	recorded int64                // number of messages that the session had before
	until    int                  // index up to which messages are published: a later end changes with each request
	pending  *events.SyncRefused  // the refusal to publish; nil without one or after it
	refused  string               // the view that the provider refused, or ""
	tried    *events.HistoryEntry // the compaction that answered the refusal
	shorter  int64                // estimated input of a history that ends before the session, 0 for any other
	raised   bool                 // calls showed a larger window than that of the model
	untried  bool                 // the session is over the budget: see compaction.Ledger.Untried
	ended    uint64               // first turn of the session before its end; the session begins again
	gave     givenAt
	sent     undecided // published turns, set by publish
}

// Answer compares the history of an agent with its session, and returns the parts to send.
func (s *Syncer) Answer(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	wait := syncWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	r := &request{Syncer: s, in: in, address: in.Address(), deadline: time.Now().Add(wait)}
	if !in.DryRun { // which publishes nothing; a branch requests it of its parent
		release, err := s.locks.hold(ctx, r.address)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := r.awaitLate(ctx); err != nil {
		return nil, err
	}
	if refused := in.Refused; refused != nil && !in.DryRun {
		r.pending, r.refused = refused, refused.View
	}
	for try := 0; ; try++ {
		r.warnings = nil
		st, committed, err := s.stateOf(ctx, r.address, events.Await{})
		if err == nil {
			err = committed(ctx)
		}
		if err != nil {
			return nil, err
		}
		if len(st.chain) == 0 {
			r.heads.drop(r.address)
		}
		ended := r.ended
		r.reserve(st)
		unknown := r.unknownModel(st)
		out, err := r.attempt(ctx, st)
		if events.CodeOf(err) == events.CodeStaleBase && (try < maxStale || r.ended > ended) {
			continue
		}
		if err == nil && out.Need == "" && out.Session == "" {
			out, err = r.freeze(ctx, st, out)
			if err == nil {
				out, err = r.shorten(ctx, st, out)
			}
		}
		if err == nil && !in.DryRun && r.gave.whole != (events.Digest{}) {
			r.given.put(r.address, r.gave)
		}
		if unknown != "" && err == nil && out.Need == "" && out.Session == "" {
			out.Warnings = append(out.Warnings, events.WarningOf(events.CodeUnknownModel, unknown))
		}
		if err == nil && out.Session == "" {
			r.finish(out)
		}
		return out, err
	}
}

// needAll returns the answer to a request with an unknown prefix.
func needAll(st *state) *events.SyncResponse {
	return &events.SyncResponse{
		V: events.Version, Need: events.NeedAll, Recorded: true, Generation: st.generation, Through: st.last, Budget: st.budget, Warnings: []events.SyncWarning{},
	}
}

func (r *request) warn(code events.Code, detail string) {
	r.warnings = append(r.warnings, events.WarningOf(code, detail))
}

// unknownModel returns a text about a model that is new to the session and whose window is a guess; ""
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
	return r.config.Compaction().UnknownModel(r.address.Tenant, override, m)
}

// reserve removes from the model a maximum output that would leave no space in its window.
func (r *request) reserve(st *state) {
	override := r.in.Policy
	if override == nil {
		override = st.settings.Policy
	}
	if m := r.config.Compaction().Reserved(r.address.Tenant, override, r.in.Model); m != r.in.Model {
		in := *r.in
		in.Model, r.in = m, &in
	}
}

// attempt compares the history with the session, publishes the new messages, and answers.
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
			ok, err = r.fitsPrefix(ctx, st)
		}
		if !ok || err != nil || in.Frozen > 0 || in.Form == events.FormMessages && r.known.Shift > 0 {
			return needAll(st), err
		}
	} else {
		if r.known, _, err = r.sameCalls(ctx, st, r.history.Match(st.chain)); err != nil {
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

// record publishes the new messages, and answers.
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
		r.warn(events.CodeTooLarge, err.Error()) // a message too large for a turn, even without its media
		return r.fit(ctx, st)
	}
	if errors.Is(err, errUndecided) {
		r.warn(events.CodeLate, "")
		return r.fit(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	if last == nil { // the session has the whole history
		return r.answerUntil(ctx, st)
	}
	decided, err := r.await(ctx, last)
	r.late.note(r.address, r.sent, err == nil && decided == nil)
	if err != nil {
		return nil, err
	}
	if decided == nil {
		r.warn(events.CodeLate, "")
		if t.from > 0 { // the history does not begin with the session's
			return r.keepAll(ctx, st, last), nil
		}
		out, err := r.answer(ctx, st, t.at)
		if err == nil {
			out.Count, out.Hash, r.gave.whole = int64(r.until), last.whole, last.whole
		}
		return out, err
	}
	if len(st.chain) == 0 { // the refused call did not use an answer of compactd
		if err := r.refuseHere(ctx, decided); err != nil {
			return nil, err
		}
	}
	r.known.Turns, r.known.At = int(last.number), r.until
	return r.answerUntil(ctx, decided)
}

// translated answers a history in another dialect than the session's. It counts as a history with
// another root.
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

// unpublished is the part of a history to publish: the messages from index at on, as turns from number
// from on; 0 means the next number. A turn ends at index stable, so that a change of the later messages
// retracts only those.
type unpublished struct {
	from   int64
	at     int
	stable int
}

// diverge handles a history that differs from the session's. An answer or an error ends the sync.
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
	if at == r.history.Len() { // it ends within a turn, and so before the session
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

// matchViews compares the history with the views of earlier answers. Without a match it returns the
// messages in them that compactd made.
func (r *request) matchViews(ctx context.Context, st *state) (made []madeMessage, err error) {
	if r.history.Before > 0 {
		return nil, nil
	}
	for v, err := range r.givenViews(ctx, st) {
		if err != nil {
			return nil, err
		}
		if k, ok := r.history.MatchView(st.chain, v.View); ok {
			if k, ok, err = r.sameCalls(ctx, st, k); ok || err != nil {
				r.known = k
				return nil, err
			}
		}
		made = append(made, v.made...)
	}
	return made, nil
}

// hasMade reports whether the history has one of the messages that compactd made. A message in which
// compactd changed only ids of calls does not count if the session has it too.
func (r *request) hasMade(ctx context.Context, st *state, made []madeMessage) (bool, error) {
	if len(made) == 0 {
		return false, nil
	}
	have := r.history.Digests()
	for _, m := range made {
		if !have[m.digest] {
			continue
		}
		if m.of.Turn == 0 || m.of.Turn > int64(len(st.chain)) {
			return true, nil
		}
		turn, err := r.textsOf(ctx, st, int(m.of.Turn-1))
		if err != nil {
			return false, err
		}
		if i := m.of.Index; i >= int64(len(turn)) || r.format.DigestOf(turn[i:i+1]) != m.digest {
			return true, nil
		}
		delete(have, m.digest) // read once
	}
	return false, nil
}

// textsOf reads the messages of a turn from the log, or returns nil if they are gone.
func (r *request) textsOf(ctx context.Context, st *state, turn int) ([]codec.Raw, error) {
	read, err := r.config.Texts.Turn(ctx, r.address, measure.Seq(st.chain[turn].Seq))
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]codec.Raw, len(read))
	for i := range read {
		out[i] = read[i].Raw
	}
	return out, nil
}

// other passes a sync to another session.
func (r *request) other(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := r.sessions.Sync(ctx, in)
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

// locks serializes the syncs of one session.
type locks struct {
	mu   sync.Mutex
	held map[events.Address]chan struct{}
}

// hold takes the lock of a session. It waits without a processor: the holder may need it.
func (l *locks) hold(ctx context.Context, a events.Address) (release func(), err error) {
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
		if err := limit.Of(ctx).Idle(ctx, func() error {
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}); err != nil {
			return nil, err
		}
	}
}
