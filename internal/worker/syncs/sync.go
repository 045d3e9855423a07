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
	// unstableAfter is how often a history may differ at one index, one time after the other.
	unstableAfter = 3
)

// errStale: another turn came before the one of a sync.
var errStale = events.NewInvalid(events.CodeStaleBase, "", "other turns of the session come all the time")

// Host is the worker that serves a session. What Publish stores with an id that it has stored
// before is the same event, and seq is that one's.
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
}

// Syncer answers syncs about the sessions of a host, one of a session at a time.
type Syncer struct {
	host   Host
	config *compaction.Config
	locks  locks
	stable stability
	views  views
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
	until    time.Time
	history  *syncing.History
	known    syncing.Known
	format   events.Format
	warnings []events.SyncWarning
	recorded int64                // messages that the session had before
	refused  string               // the view that the provider refused, "" for none
	tried    *events.HistoryEntry // what that led to
	ended    uint64               // a turn that began the session, before it ended and is to begin again
}

// Answer takes the history of an agent, and answers what of it to send.
func (s *Syncer) Answer(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	wait := syncWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	x := &request{Syncer: s, in: in, address: in.Address(), until: time.Now().Add(wait)}
	if !in.DryRun { // which publishes nothing; a branch requests it of its parent
		release, err := s.locks.hold(ctx, x.address)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	refused := in.Refused
	if in.DryRun {
		refused = nil
	}
	for try := 0; ; try++ {
		x.warnings = nil
		st, err := s.stateOf(ctx, x.address)
		if err != nil {
			return nil, err
		}
		if refused != nil && len(st.chain) > 0 {
			if err := x.refuse(ctx, st, refused); err != nil {
				return nil, err
			}
			refused = nil
			if st, err = s.stateOf(ctx, x.address); err != nil {
				return nil, err
			}
		}
		ended := x.ended
		out, err := x.once(ctx, st)
		if events.CodeOf(err) == events.CodeStaleBase && (try < maxStale || x.ended > ended) {
			continue
		}
		return out, err
	}
}

// needAll is the answer to a request whose prefix is not known here.
func needAll(st *state) *events.SyncResponse {
	return &events.SyncResponse{
		V: events.Version, Need: events.NeedAll, Generation: st.generation, Through: st.last, Budget: st.budget, Warnings: []events.SyncWarning{},
	}
}

func (x *request) warn(code events.Code, detail string) {
	info := events.Codes[code]
	w := events.SyncWarning{Code: code, Message: info.Meaning, Hint: info.Hint}
	if detail != "" {
		w.Message += " " + detail
	}
	x.warnings = append(x.warnings, w)
}

// once compares the history with the session, publishes what is new, and answers.
func (x *request) once(ctx context.Context, st *state) (*events.SyncResponse, error) {
	in := x.in
	x.format = cmp.Or(in.Format, st.format, events.DefaultFormat(in.Model))
	if st.format != "" && x.format != st.format {
		return nil, events.NewInvalid(events.CodeFormatChanged, "format", "is not "+string(st.format)+", that of the session")
	}
	before := 0
	if in.Prefix != nil {
		before = int(in.Prefix.Count)
	}
	x.history = syncing.Read(x.format, in.Messages, before)
	if before > 0 {
		var ok bool
		if x.known, ok = x.history.MatchPrefix(st.chain, in.Prefix.Hash); !ok {
			return needAll(st), nil
		}
	} else {
		x.known = x.history.Match(st.chain)
	}
	t := toPublish{from: 0, at: x.known.At}
	if diverged := x.known.Turns < len(st.chain) && x.known.At < x.history.Len(); diverged {
		to, out, err := x.diverge(ctx, st)
		if out != nil || err != nil {
			return out, err
		}
		t = to
	}
	x.recorded = int64(t.at)
	behind := t.from == 0 && x.known.Turns < len(st.chain) // it ends before the session does
	if in.DryRun || behind {
		return x.answer(ctx, st, t.at)
	}
	last, err := x.publish(ctx, st, t)
	if err != nil {
		return nil, err
	}
	if last == nil { // the session has it all
		return x.answer(ctx, st, x.history.Len())
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
			out.Count, out.Hash = int64(x.history.Len()), last.whole
		}
		return out, err
	}
	if t.from == 0 {
		x.stable.extended(x.address)
	}
	x.known.Turns, x.known.At = int(last.number), x.history.Len()
	return x.answer(ctx, decided, x.history.Len())
}

// toPublish is what is to be published: the messages from at on, as the turns from a number on,
// 0 for the next.
type toPublish struct {
	from int64
	at   int
}

// diverge decides about a history that is another one than the session has. An answer or an
// error ends the sync.
func (x *request) diverge(ctx context.Context, st *state) (t toPublish, out *events.SyncResponse, err error) {
	var made []events.Raw
	if x.history.Before == 0 {
		views, err := x.viewsOf(ctx, st)
		if err != nil {
			return t, nil, err
		}
		for _, v := range views {
			if k, ok := x.history.MatchView(st.chain, v.View); ok {
				x.known = k
				if k.Turns == len(st.chain) || k.At == x.history.Len() {
					return toPublish{0, k.At}, nil, nil
				}
				return toPublish{int64(k.Turns) + 1, k.At}, nil, nil
			}
			made = append(made, v.made...)
		}
	}
	turn, err := x.textsOf(ctx, st, x.known.Turns)
	if err != nil {
		return t, nil, err
	}
	at := x.known.At + x.history.Common(x.known.At, turn)
	if at == x.history.Len() { // it ends within a turn: as a history that ends before the session
		return toPublish{0, x.known.At}, nil, nil
	}
	on := x.in.OnDivergence
	edited := len(made) > 0 && x.history.HasAny(made)
	switch {
	case edited && on != events.DivergeRefuse:
		out, err = x.branch(ctx, st)
		if err == nil {
			x.warn(events.CodeEditedView, "")
			out.Warnings = append(out.Warnings, x.warnings...)
		}
		return t, out, err
	case edited:
		return t, nil, events.NewInvalid(events.CodeEditedView, "messages", "have messages of compactd that were changed")
	case on == events.DivergeBranch:
		out, err = x.branch(ctx, st)
		return t, out, err
	case at == x.history.Lead && x.history.Before == 0 && whole(st.chain) && !x.worked(ctx, st):
		return t, nil, events.NewInvalid(events.CodeOtherHistory, "messages", "have nothing in common with those of the session")
	case on == events.DivergeRefuse:
		return t, nil, events.NewInvalid(events.CodeDiverged, "messages", fmt.Sprintf("differ from those of the session from index %d on", at))
	}
	if x.history.Len() >= x.known.Index(int(st.chain[len(st.chain)-1].End)) && x.stable.differs(x.address, at) >= unstableAfter {
		detail := fmt.Sprintf("It is message %d.", at)
		if i := at - x.known.At; i < len(turn) {
			detail = fmt.Sprintf("It is member %q of message %d.", syncing.Member(turn[i], x.history.At(at)), at)
		}
		x.warn(events.CodeUnstableHistory, detail)
		return t, x.native(st, nil), nil
	}
	return toPublish{int64(x.known.Turns) + 1, x.known.At}, nil, nil
}

// whole reports whether the digests of a chain are known: those of ledgers of 0.1.0 are not.
func whole(chain []events.Link) bool {
	return len(chain) > 0 && chain[len(chain)-1].Whole != events.Digest{}
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

// lastTurns is how many turns of the end of a session a history is searched for.
const lastTurns = 4

// worked reports whether the history has work of the last turns of the session.
func (x *request) worked(ctx context.Context, st *state) bool {
	for i := len(st.chain) - 1; i >= max(0, len(st.chain)-lastTurns); i-- {
		if turn, err := x.textsOf(ctx, st, i); err == nil && x.history.HasWork(turn) {
			return true
		}
	}
	return false
}

// branch has the branch answer that the history belongs to. Its name follows from where the
// history differs, so that a later request finds it.
func (x *request) branch(ctx context.Context, st *state) (*events.SyncResponse, error) {
	if x.history.Before > 0 {
		return needAll(st), nil
	}
	var at events.Digest
	if x.known.Turns > 0 {
		at = st.chain[x.known.Turns-1].Whole
	}
	first := x.format.DigestOf(x.history.From(x.known.At)[:1])
	in := *x.in
	in.Session, in.Branch = x.address.Session, at.String()[:8]+first.String()[:8]
	in.Fork = &events.Fork{Session: x.address.Session, Turn: int64(x.known.Turns)}
	in.OnDivergence = events.DivergeReplace
	if x.refused != "" { // it was of this session
		in.Refused = nil
	}
	ms := max(time.Until(x.until), 0).Milliseconds()
	in.WaitMS = &ms
	return x.other(ctx, &in)
}

// other has a sync answered about another session.
func (x *request) other(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := x.host.Sync(ctx, in)
	if err == nil {
		out.Session = in.Address().Session
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

// stability counts how often the history of a session differed at one index.
type stability struct {
	mu sync.Mutex
	at map[events.Address]*unstable
}

type unstable struct {
	index, times int
	last         time.Time
}

// Bounds of what is remembered of histories that differ.
const (
	maxUnstable   = 10_000
	unstableReset = 10 * time.Minute
)

// differs counts one more time, and returns how many there are.
func (u *stability) differs(a events.Address, index int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil || len(u.at) >= maxUnstable {
		u.at = map[events.Address]*unstable{}
	}
	x := u.at[a]
	if x == nil || x.index != index || time.Since(x.last) > unstableReset {
		x = &unstable{index: index}
		u.at[a] = x
	}
	x.times, x.last = x.times+1, time.Now()
	return x.times
}

func (u *stability) extended(a events.Address) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.at, a)
}
