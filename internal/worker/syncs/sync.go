package syncs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/syncing"
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
var errStale = events.NewInvalid(events.CodeStaleBase, "", "other turns of the session come all the time")

// Host is the worker that serves a session. An event that Publish stores again with its id is
// the same event, with the same seq.
type Host interface {
	// Inspect shows a ledger to read, and returns a function that waits until all it rests on is
	// committed. read must not keep the ledger.
	Inspect(a events.Address, read func(*compaction.Ledger)) (committed func(context.Context) error, err error)
	// Turn and Sourced are those of [payload.Renderer].
	Turn(ctx context.Context, a events.Address, seq compaction.Seq) ([]events.Message, error)
	Sourced(ctx context.Context, a events.Address, v *compaction.View, own func(compaction.Seq) []events.Message) ([]compaction.Sourced, error)
	Publish(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (seq uint64, err error)
	MaxBytes() int // of an event
	// AwaitDecided waits for an event; an error with the code turn_pending is that the time is over.
	AwaitDecided(ctx context.Context, a events.Address, w events.Await) error
	Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error)
	// Sync has a sync answered about another session, by the worker that serves it.
	Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error)
	Pause(ctx context.Context, d time.Duration) error
	// Yield lets others compute whose turn it is.
	Yield(ctx context.Context) error
}

// Syncer answers syncs about the sessions of a host, one of a session at a time.
type Syncer struct {
	host   Host
	config *compaction.Config
	locks  locks
	stable stability
	heads  heads
	views  views
	given  given
}

// New returns a syncer.
func New(h Host, c *compaction.Config) *Syncer { return &Syncer{host: h, config: c} }

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
	view       *compaction.View
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

// stateOf reads the ledger of a session, once all that it rests on is committed.
func (s *Syncer) stateOf(ctx context.Context, a events.Address) (*state, error) {
	st := &state{}
	committed, err := s.host.Inspect(a, func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		st.budget = l.Describe(s.config).Budget
		st.raised = l.WindowRaised()
		st.chain, st.format, st.settings = l.Chain(), l.Format(), l.Settings()
		st.generation, st.last = l.Generation(), l.Through()
		st.through = l.GenerationThrough(st.generation)
		st.retracted, st.branched = l.Retracted(), uint64(l.Branched())
		st.view, _, _ = l.View()
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
	history  *syncing.History
	known    syncing.Known
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
}

// Answer takes the history of an agent, and answers what of it to send.
func (s *Syncer) Answer(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	wait := syncWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	x := &request{Syncer: s, in: in, address: in.Address(), deadline: time.Now().Add(wait)}
	if !in.DryRun { // which publishes nothing; a branch requests it of its parent
		release, err := s.locks.hold(ctx, x.address)
		if err != nil {
			return nil, err
		}
		defer release()
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
		unknown := x.unknownModel(st)
		out, err := x.once(ctx, st)
		if events.CodeOf(err) == events.CodeStaleBase && (try < maxStale || x.ended > ended) {
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

func (x *request) warn(code events.Code, detail string) {
	x.warnings = append(x.warnings, events.WarningOf(code, detail))
}

// unknownModel is a text about a model that the session did not have before, and whose window
// is a guess; "" for any other one.
func (x *request) unknownModel(st *state) string {
	now, m, override := &st.settings, x.in.Model, x.in.Policy
	switch {
	case m == nil && len(st.chain) == 0:
		m = &now.Model
	case m == nil, len(st.chain) > 0 && *m == now.Model:
		return ""
	}
	if override == nil {
		override = now.Policy
	}
	return x.config.UnknownModel(x.address.Tenant, override, m)
}

// once compares the history with the session, publishes what is new, and answers.
func (x *request) once(ctx context.Context, st *state) (*events.SyncResponse, error) {
	in := x.in
	x.format = cmp.Or(in.Format, st.format, events.DefaultFormat(in.Model))
	if st.format != "" && x.format != st.format {
		return x.translated(ctx, st)
	}
	before, err := 0, error(nil)
	if in.Prefix != nil {
		before = int(in.Prefix.Count)
	}
	x.history = syncing.Read(x.format, in.Messages, before)
	x.until = x.history.Len()
	if before > 0 {
		var ok bool
		if x.known, ok = x.history.MatchPrefix(st.chain, in.Prefix.Hash); ok {
			ok, err = x.fitsPrefix(st)
		}
		if !ok || err != nil || in.Frozen > 0 || in.Form == events.FormMessages && x.known.Shift > 0 {
			return needAll(st), err
		}
	} else {
		if x.known, _, err = x.sameCalls(st, x.history.Match(st.chain)); err != nil {
			return nil, err
		}
	}
	t := toPublish{from: 0, at: x.known.At}
	if diverged := x.known.Turns < len(st.chain) && x.known.At < x.history.Len(); diverged {
		to, out, err := x.diverge(ctx, st)
		if out != nil || err != nil {
			return out, err
		}
		t = to
	}
	if err := x.host.Yield(ctx); err != nil {
		return nil, err
	}
	return x.record(ctx, st, t)
}

// record publishes what is new, and answers.
func (x *request) record(ctx context.Context, st *state, t toPublish) (*events.SyncResponse, error) {
	x.recorded = int64(t.at)
	if x.in.DryRun {
		return x.answer(ctx, st, t.at)
	}
	x.heads.went(x.address)
	if t.from == 0 && x.known.Turns < len(st.chain) {
		return x.behind(ctx, st, t.at)
	}
	if err := x.refuseHere(ctx, st); err != nil {
		return nil, err
	}
	x.until = x.stable.until(x.address, x.history, t.at)
	last, err := x.publish(ctx, st, t)
	if events.CodeOf(err) == events.CodeTooLarge {
		x.warn(events.CodeTooLarge, err.Error()) // a message that no turn has room for, without its media
		return x.fit(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	if last == nil { // the session has it all
		return x.answerUntil(ctx, st)
	}
	decided, err := x.await(ctx, last)
	if err != nil {
		return nil, err
	}
	if decided == nil {
		x.warn(events.CodeLate, "")
		if t.from > 0 { // what the session had is no beginning of the history
			return x.native(st, last), nil
		}
		out, err := x.answer(ctx, st, t.at)
		if err == nil {
			out.Count, out.Hash, x.gave.whole = int64(x.until), last.whole, last.whole
		}
		return out, err
	}
	if len(st.chain) == 0 { // the refused call was made without an answer
		if err := x.refuseHere(ctx, decided); err != nil {
			return nil, err
		}
	}
	x.known.Turns, x.known.At = int(last.number), x.until
	return x.answerUntil(ctx, decided)
}

// translated answers a history of another dialect than that of the session: it has another root.
func (x *request) translated(ctx context.Context, st *state) (*events.SyncResponse, error) {
	x.history = syncing.Read(x.format, x.in.Messages, 0)
	x.until = x.history.Len()
	x.known = syncing.Known{At: x.history.Lead, Shift: x.history.Lead}
	on := x.in.OnDivergence
	switch {
	case x.in.Prefix != nil:
		return needAll(st), nil
	case on == events.DivergeRefuse || x.history.Lead == x.history.Len():
		return nil, events.NewInvalid(events.CodeFormatChanged, "format", "is not "+string(st.format)+", that of the session")
	case on == events.DivergeBranch:
		return x.branch(ctx, st, x.history.Lead)
	case on == events.DivergeReplace && x.in.DryRun:
		return x.fit(ctx, st)
	case on == events.DivergeReplace:
		return x.record(ctx, st, toPublish{1, x.history.Lead, x.history.Lead})
	}
	return x.lineage(ctx, st, x.history.Lead, true)
}

// toPublish is what is to be published: the messages from at on, as the turns from a number on,
// 0 for the next. A turn ends at stable, so that all before it stays when the rest is another one
// the next time.
type toPublish struct {
	from   int64
	at     int
	stable int
}

// diverge decides about a history that is another one than the session has. An answer or an
// error ends the sync.
func (x *request) diverge(ctx context.Context, st *state) (t toPublish, out *events.SyncResponse, err error) {
	made, err := x.matchViews(ctx, st)
	if err != nil {
		return t, nil, err
	}
	if x.known.Turns == len(st.chain) || x.known.At == x.history.Len() {
		return toPublish{from: 0, at: x.known.At}, nil, nil
	}
	turn, err := x.textsOf(ctx, st, x.known.Turns)
	if err != nil {
		return t, nil, err
	}
	at := x.known.At + x.history.Common(x.known.At, turn)
	if at == x.history.Len() { // it ends within a turn: as a history that ends before the session
		return toPublish{from: 0, at: x.known.At}, nil, nil
	}
	t = toPublish{int64(x.known.Turns) + 1, x.known.At, at}
	on, root := x.in.OnDivergence, at == x.history.Lead && x.history.Before == 0
	edited, err := x.hasMade(ctx, st, made)
	if err != nil {
		return t, nil, err
	}
	switch {
	case edited && on != events.DivergeRefuse:
		out, err = x.branch(ctx, st, at)
		if err == nil {
			x.warn(events.CodeEditedView, "")
			out.Warnings = append(out.Warnings, x.warnings...)
		}
		return t, out, err
	case edited:
		return t, nil, events.NewInvalid(events.CodeEditedView, "messages", "have messages of compactd that were changed")
	case on == events.DivergeBranch:
		out, err = x.branch(ctx, st, at)
		return t, out, err
	case on == events.DivergeRefuse && root:
		return t, nil, events.NewInvalid(events.CodeOtherHistory, "messages", "have nothing in common with those of the session")
	case on == events.DivergeRefuse:
		return t, nil, events.NewInvalid(events.CodeDiverged, "messages", fmt.Sprintf("differ from those of the session from index %d on", at))
	case on == events.DivergeAuto:
		if out, err = x.lineage(ctx, st, at, root); out != nil || err != nil {
			return t, out, err
		}
	}
	if !x.in.DryRun && x.stable.differs(x.address, x.history, at, x.known.Index(int(st.chain[len(st.chain)-1].End))) {
		detail := fmt.Sprintf("It is message %d.", at)
		if i := at - x.known.At; i < len(turn) {
			detail = fmt.Sprintf("It is member %q of message %d.", syncing.Member(turn[i], x.history.At(at)), at)
		}
		x.warn(events.CodeUnstableHistory, detail)
		out, err = x.fit(ctx, st)
		return t, out, err
	}
	return t, nil, nil
}

// matchViews compares the history with the views of earlier answers. Where it begins with none it
// returns the messages of compactd that they have.
func (x *request) matchViews(ctx context.Context, st *state) (made []madeMessage, err error) {
	if x.history.Before > 0 {
		return nil, nil
	}
	views, err := x.viewsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if k, ok := x.history.MatchView(st.chain, v.View); ok {
			if k, ok, err = x.sameCalls(st, k); ok || err != nil {
				x.known = k
				return nil, err
			}
		}
		made = append(made, v.made...)
	}
	return made, nil
}

// hasMade reports whether the history has one of some messages that compactd made. One whose ids
// of calls alone were changed is also the session's own.
func (x *request) hasMade(ctx context.Context, st *state, made []madeMessage) (bool, error) {
	if len(made) == 0 {
		return false, nil
	}
	have := x.history.Digests()
	for _, m := range made {
		d := x.format.DigestOf([]events.Raw{m.raw})
		if !have[d] {
			continue
		}
		if m.of.Turn == 0 || m.of.Turn > int64(len(st.chain)) {
			return true, nil
		}
		turn, err := x.textsOf(ctx, st, int(m.of.Turn-1))
		if err != nil {
			return false, err
		}
		if i := m.of.Index; i >= int64(len(turn)) || x.format.DigestOf(turn[i:i+1]) != d {
			return true, nil
		}
		delete(have, d) // read once
	}
	return false, nil
}

// textsOf reads the messages of a turn from the log, nil where it is gone.
func (x *request) textsOf(ctx context.Context, st *state, turn int) ([]events.Raw, error) {
	read, err := x.host.Turn(ctx, x.address, compaction.Seq(st.chain[turn].Seq))
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

// other has a sync answered about another session.
func (x *request) other(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := x.host.Sync(ctx, in)
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

// locks serialize what is done about one session.
type locks struct {
	mu   sync.Mutex
	held map[events.Address]chan struct{}
}

// hold waits for its turn.
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
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
