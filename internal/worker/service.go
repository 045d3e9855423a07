package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

const (
	// maxAnswers is how many histories are rendered at once.
	maxAnswers = 8
	// answerTimeout bounds an answer, the wait for its turn included.
	answerTimeout = 10 * time.Second
	// maxAnswerBytes bounds a page of a history.
	maxAnswerBytes = 4 << 20
	// answerMargin is what a page stays below the server's max_payload.
	answerMargin = 64 << 10
	// commitPause is how long an answer waits between two looks at what is
	// committed.
	commitPause = 2 * time.Millisecond
)

var (
	errNotServed = errors.New("the partition of this session is not served yet")
	errBusy      = errors.New("the worker could not answer in time")
	errStopping  = errors.New("the worker is stopping")
)

// service answers requests. It holds a partition's lock only to copy what the
// ledger says; texts are read and rendered outside.
type service struct {
	w     *Worker
	ready <-chan struct{}
	slots chan struct{} // one for each answer that is being rendered

	relayed chan struct{} // has one for each question that another worker is asked
}

func newService(w *Worker) *service {
	return &service{w: w, ready: w.Ready(), slots: make(chan struct{}, maxAnswers), relayed: make(chan struct{}, maxRelayed)}
}

// endpoint is what may be asked, whatever way the question comes.
type endpoint struct {
	name, subject string
	ask           func(context.Context, []byte) (any, error)
	slow          bool // reads the log: each answer has a slot
	// partition says whose question it is: only the worker that serves the partition
	// can answer. Nil leaves it to any worker. An error leaves it to any, too: the
	// answer says what is wrong.
	partition func(request []byte) (int, error)
}

func (s *service) endpoints() []endpoint {
	return []endpoint{
		{"check", events.SubjectCheck, s.check, false, s.partitionOf},
		{"context", events.SubjectContext, s.context, true, s.partitionOf},
		{"files", events.SubjectFiles, s.files, true, s.partitionOf},
		{"recall", events.SubjectRecall, s.recall, true, s.partitionOf},
		{"sessions", events.SubjectSessions, s.sessions, true, s.partitionAfter},
		{"stats", events.SubjectStats, s.stats, false, s.partitionOf},
		{"health", events.SubjectHealth, s.health, false, nil},
	}
}

// partitionOf is the partition of the session that a request is about.
func (s *service) partitionOf(request []byte) (int, error) {
	a, err := events.AskedAbout(request)
	return events.PartitionOf(a, len(s.w.served)), err
}

// run answers until ctx ends, and returns when the last answer is given.
func (s *service) run(ctx context.Context) error {
	svc, err := micro.AddService(s.w.config.Read, micro.Config{
		Name: events.ServiceName, Version: strconv.Itoa(events.Version) + ".0.0", // of the contract: a program's need not be semantic
		Description: "answers questions about the sessions of compactd",
		Metadata:    map[string]string{"version": s.w.config.Version, "owner": s.w.config.Owner},
	})
	if err != nil {
		return fmt.Errorf("start service: %w", err)
	}
	defer func() { _ = svc.Stop() }() // fails only on a closed connection, where nothing is left to stop
	for _, e := range s.endpoints() {
		guarded := func(ctx context.Context, r micro.Request) {
			if mayReply(r.Reply()) && !s.pass(ctx, e, r) {
				s.handle(ctx, e, r)
			}
		}
		if err := svc.AddEndpoint(e.name, micro.ContextHandler(ctx, guarded), micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(described(e.name))); err != nil {
			return fmt.Errorf("start service: endpoint %s: %w", e.name, err)
		}
		if err := s.addOfTenant(ctx, svc, e, guarded); err != nil {
			return fmt.Errorf("start service: endpoint %s: %w", e.name, err)
		}
	}
	if err := s.w.config.Read.FlushTimeout(answerTimeout); err != nil && ctx.Err() == nil {
		return fmt.Errorf("start service: %w", err)
	}
	s.w.ready.Done() // the server sends questions here from now on
	<-ctx.Done()
	_ = svc.Stop()
	if nc := s.w.config.Read; nc.IsConnected() {
		_ = nc.FlushTimeout(time.Second) // the server sends nobody here any more; if not, the one who asks waits in vain
	}
	for range maxAnswers { // from here on none begins
		s.slots <- struct{}{}
	}
	return nil
}

// mayReply reports whether answers may go to a subject: a request must not make
// the worker publish where others may not.
func mayReply(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	switch root {
	case "", "session", "log", "out", events.ServiceName:
		return false
	}
	return root[0] != '$'
}

// handle answers a request that this worker was sent.
func (s *service) handle(ctx context.Context, e endpoint, r micro.Request) {
	data := r.Data()
	if e.slow || len(data) > events.MaxRequestBytes { // others of this endpoint would wait for it
		s.answerLater(ctx, r, func(ctx context.Context) (any, error) { return e.ask(ctx, data) })
		return
	}
	s.answer(r, func() (any, error) { return e.ask(ctx, data) })
}

// stats answers how a session stands.
func (s *service) stats(_ context.Context, data []byte) (any, error) {
	in, err := events.DecodeStatsRequest(data)
	if err != nil {
		return nil, err
	}
	out := &events.StatsResponse{V: events.Version}
	var bad error
	_, _, err = s.look(in.Address(), func(l *compaction.Ledger) {
		if !l.Known() {
			return
		}
		var st compaction.Stats
		if st, bad = l.Stats(s.w.config.Compaction, in.Wanted()); bad != nil {
			return
		}
		*out = events.StatsResponse{
			V: events.Version, Known: true, Turns: st.Turns, Messages: int64(st.Messages), Generation: st.Generation,
			Through: st.Through, Parked: int64(st.Parked), Prepared: st.Prepared, Waiting: st.Waiting,
			NeedsCompaction: st.Budget.ShouldCompact, Budget: st.Budget,
		}
	})
	return out, cmp.Or(err, bad)
}

// health answers how this worker is.
func (s *service) health(context.Context, []byte) (any, error) {
	out := &events.HealthResponse{
		V: events.Version, Status: events.HealthOK,
		Version: s.w.config.Version, Owner: s.w.config.Owner, Config: s.w.config.Compaction.Hash(),
	}
	for id := range s.w.served {
		if !s.w.assigned[id].Load() {
			continue
		}
		if out.Partitions++; s.w.served[id].Load() != nil {
			out.Served++
		}
	}
	if out.Served < out.Partitions || !s.w.config.Commit.IsConnected() {
		out.Status = events.HealthStarting
		select {
		case <-s.ready:
			out.Status = events.HealthDegraded
		default:
		}
	}
	return out, nil
}

// context answers with a session's history.
func (s *service) context(ctx context.Context, data []byte) (any, error) {
	in, err := events.DecodeContextRequest(data)
	if err != nil {
		return nil, err
	}
	return s.history(ctx, in)
}

// answerLater waits for a slot and leaves the work to a goroutine of its own.
func (s *service) answerLater(ctx context.Context, r micro.Request, f func(context.Context) (any, error)) {
	work, cancel := context.WithTimeoutCause(ctx, answerTimeout, errBusy)
	select {
	case s.slots <- struct{}{}:
	case <-work.Done():
		s.answer(r, func() (any, error) { return nil, whyEnded(work) })
		cancel()
		return
	}
	to := late{s.w.config.Read, r.Reply()}
	go func() {
		defer func() { <-s.slots }()
		defer cancel()
		s.answer(to, func() (any, error) { return f(work) })
	}()
}

// history renders what is asked for.
func (s *service) history(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	var view *compaction.View
	var system, tools compaction.Seq
	var st compaction.Stats
	var bad error
	p, at, err := s.look(in.Address(), func(l *compaction.Ledger) {
		if !l.Known() {
			return
		}
		st, bad = l.Stats(s.w.config.Compaction, events.Model{})
		view, system, tools = l.View()
		if in.Generation != nil && *in.Generation <= st.Generation {
			view, st.Generation = l.ViewAt(*in.Generation), *in.Generation
		}
	})
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	if view != nil && in.Generation != nil && *in.Generation != st.Generation {
		return nil, events.NewInvalid(events.CodeUnknownGeneration, "generation", fmt.Sprintf("must be between 0 and %d", st.Generation))
	}
	whole := &events.ContextResponse{V: events.Version, Known: view != nil, Page: 1, Pages: 1}
	if !whole.Known {
		return whole, nil
	}
	if err := s.awaitTold(ctx, p, in.Address(), at); err != nil {
		return nil, err
	}
	whole.Format, whole.Generation, whole.Through = view.Format, st.Generation, st.Through
	if whole.Messages, err = s.w.texts.render(ctx, in.Address(), view); err != nil {
		return nil, orEnded(ctx, err)
	}
	if whole.System, whole.Tools, err = s.w.texts.prompt(ctx, in.Address(), system, tools); err != nil {
		return nil, orEnded(ctx, err)
	}
	return whole.Paged(in.Page, min(maxAnswerBytes, broker.MaxPayload(s.w.config.Read)-answerMargin))
}

// look shows the ledger of a session to read, under the lock of its partition,
// and returns up to which event it holds. read must not keep the ledger.
func (s *service) look(a events.Address, read func(*compaction.Ledger)) (*partition, compaction.Seq, error) {
	p := s.w.served[events.PartitionOf(a, len(s.w.served))].Load()
	if p == nil {
		return nil, 0, errNotServed
	}
	p.state.Lock()
	defer p.state.Unlock()
	if p.ended() { // what it loads ledgers from may be closed
		return nil, 0, errNotServed
	}
	l, err := p.decider.ledger(a)
	if err != nil {
		return nil, 0, err
	}
	read(l)
	p.evict() // a question may have brought one back
	return p, p.decided.seq, nil
}

// awaitTold waits until the outcomes that a view rests on are committed: what is
// only decided may be decided otherwise after a crash, under another config.
func (s *service) awaitTold(ctx context.Context, p *partition, a events.Address, seq compaction.Seq) error {
	tick := time.NewTicker(commitPause)
	defer tick.Stop()
	for !p.hasTold(a, seq) {
		if s.w.served[p.id].Load() != p {
			return errNotServed
		}
		select {
		case <-ctx.Done():
			return whyEnded(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// ended reports whether the partition takes no more events.
func (p *partition) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// hasTold reports whether every outcome for a that an event up to seq led to is
// committed.
func (p *partition) hasTold(a events.Address, seq compaction.Seq) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end.seq < seq {
		return false // decided, and not queued yet
	}
	for _, g := range p.queue {
		if g.end.seq > seq {
			break
		}
		for _, o := range g.outcomes {
			if o.address == a {
				return false
			}
		}
	}
	return true
}

// prompt reads the system prompt and the tools from the turns that set them, 0
// for none.
func (t *texts) prompt(ctx context.Context, a events.Address, system, tools compaction.Seq) (s, d events.Raw, err error) {
	var seqs []uint64
	if system != 0 {
		seqs = append(seqs, uint64(system))
	}
	if tools != 0 && tools != system {
		seqs = append(seqs, uint64(tools))
	}
	bodies, err := broker.GetLog(ctx, t.nc, seqs)
	if err != nil {
		return nil, nil, fmt.Errorf("read prompt: %w", err)
	}
	for _, b := range bodies {
		if at, err := events.ParseLog(b.Subject); err != nil || at.Address != a {
			return nil, nil, fmt.Errorf("read prompt: sequence %d belongs to another session", b.Seq)
		}
		turn, err := events.DecodeTurn(b.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("read prompt: sequence %d: %w", b.Seq, errors.New(string(events.CodeOf(err))))
		}
		if b.Seq == uint64(system) {
			s = turn.System
		}
		if b.Seq == uint64(tools) {
			d = turn.Tools
		}
	}
	return s, d, nil
}

// whyEnded says why the work on an answer ended early.
func whyEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errBusy) {
		return errBusy
	}
	return errStopping
}

// orEnded returns err, or why ctx ended where that is the reason.
func orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return whyEnded(ctx)
	}
	return err
}

// responder is where an answer goes: a [micro.Request], or late.
type responder interface {
	Respond([]byte, ...micro.RespondOpt) error
	Error(code, description string, data []byte, opts ...micro.RespondOpt) error
}

// answer sends what f returns. What the worker did not expect is told to the
// listener; the one who asked learns no more than that.
func (s *service) answer(to responder, f func() (any, error)) {
	data, err := s.payload(f)
	if err == nil {
		err = to.Respond(data)
	} else {
		e := s.refuse(err)
		data, _ = events.Marshal(e) // of strings
		err = to.Error(string(e.Code), e.Message, data)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		call(s.w.config.Listener.Interrupted, Interrupted{-1, "answer", err})
	}
}

// payload writes an answer. A panic is an error of this answer alone.
func (s *service) payload(f func() (any, error)) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("answer: panic: %v", r)
		}
	}()
	v, err := f()
	if err != nil {
		return nil, err
	}
	if data, err = events.Marshal(v); err != nil {
		return nil, err
	}
	if most := broker.MaxPayload(s.w.config.Read); len(data) > most {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("a page with one value of it has %d bytes, more than the %d that the server takes", len(data), most))
	}
	return data, nil
}

// refuse is refusal, and tells the listener what nobody expected.
func (s *service) refuse(err error) *events.ServiceError {
	e := refusal(err)
	if _, elsewhere := errors.AsType[*events.ServiceError](err); e.Code == events.CodeInternal && !elsewhere {
		call(s.w.config.Listener.Interrupted, Interrupted{-1, "answer", err})
	}
	return e
}

// refusal is what the one who asked is told about an error.
func refusal(err error) *events.ServiceError {
	e := &events.ServiceError{V: events.Version, Code: events.CodeInternal}
	bad, invalid := errors.AsType[*events.Invalid](err)
	_, gone := errors.AsType[*broker.GoneError](err)
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return refused // by another worker
	}
	switch {
	case errors.Is(err, errOtherTenant):
		e.Code, e.Message, e.Hint = events.CodeForbidden, err.Error(), "Name the tenant of the subject in the payload too."
	case invalid:
		e.Code, e.Message, e.Hint = bad.Code(), bad.Error(), bad.Hint()
	case errors.Is(err, errNotServed), errors.Is(err, errBusy), errors.Is(err, errStopping):
		e.Code, e.Message, e.Hint = events.CodeUnavailable, err.Error(), "Ask again in a moment."
	case gone:
		e.Code, e.Message, e.Hint = events.CodeGone, "a text of this session is no longer in the log", "Send the whole history again with replaces_from 1."
	default:
		e.Message, e.Hint = "a defect of the worker kept it from answering", "See the log of the worker, and report it."
	}
	return e
}

// late answers after the handler has returned, when the request itself must no
// longer be touched.
type late struct {
	nc    *nats.Conn
	reply string
}

func (l late) Respond(data []byte, _ ...micro.RespondOpt) error { return l.nc.Publish(l.reply, data) }

func (l late) Error(code, description string, data []byte, _ ...micro.RespondOpt) error {
	return l.nc.PublishMsg(&nats.Msg{Subject: l.reply, Data: data, Header: nats.Header{
		micro.ErrorHeader: {description}, micro.ErrorCodeHeader: {code},
	}})
}
