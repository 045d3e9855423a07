package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Worker answers syncs: an [*HTTP], or a [*Client] over NATS.
type Worker interface {
	Sync(ctx context.Context, session string, in Sync) (*Synced, error)
}

// FitterConfig has the settings of a [Fitter].
type FitterConfig struct {
	// Worker is required.
	Worker Worker
	// Wait is the most that a call waits for a worker. Default 500 ms.
	Wait time.Duration
	// RetryAfter is the time without requests to a worker after three failures of a session. Default 5 s.
	RetryAfter time.Duration
	// Remembered is the number of remembered conversations. Default 256.
	Remembered int
	// OnProblem is called when a worker does not answer or refuses, and with warnings of its
	// answers, for logs and the user. It gets each code of a session once, until an answer for the
	// session is without it; of a worker that does not answer, or refuses the token, one for all sessions.
	// Must not block.
	OnProblem func(Note)
	// OnCompacted is called with the first answer of a new generation of a session. Its Budget is
	// that of the shorter history. Must not block.
	OnCompacted func(session string, s *Synced)
}

const (
	failures    = 3               // in a row, after which no worker is requested
	refusedWait = 6 * time.Second // a worker decides for five
	mostWait    = 8 * time.Second // that a worker accepts
)

// Fitter fits the histories of calls into windows, for a [Conversation] or for package transport.
// It fails open:
//
//   - A worker that does not answer costs a call at most [FitterConfig].Wait, and a refused call
//     six seconds. After three failures of a session no worker is requested for [FitterConfig].RetryAfter.
//   - Without a worker the last answer is sent with the messages since, where instructions, tools
//     and model are the same; else the caller's own history. If it exceeds nine tenths of the
//     window of the last answer, the oldest turns are left out until half of the room is free, so
//     that the calls that follow append to the same messages: instructions and the first prompt
//     stay, and calls stay with their results. An image counts as a thousand tokens.
//
// It is safe for concurrent use, by many sessions and by sub-agents of one. It remembers the last
// answers of conversations by their content, without the marks of a cache; one that is not
// remembered costs its prefix and usage alone.
type Fitter struct {
	config   FitterConfig
	memory   memory
	problems problems

	mu       sync.Mutex // guards breakers
	breakers map[string]*gobreaker.CircuitBreaker[*Synced]
}

// NewFitter returns a fitter.
func NewFitter(c FitterConfig) *Fitter {
	c.Wait = cmp.Or(c.Wait, 500*time.Millisecond)
	c.RetryAfter = cmp.Or(c.RetryAfter, 5*time.Second)
	c.Remembered = cmp.Or(c.Remembered, 256)
	if c.OnProblem == nil {
		c.OnProblem = func(Note) {}
	}
	if c.OnCompacted == nil {
		c.OnCompacted = func(string, *Synced) {}
	}
	return &Fitter{config: c, memory: memory{most: c.Remembered}, breakers: map[string]*gobreaker.CircuitBreaker[*Synced]{}}
}

// fitting has the messages to send of a call.
type fitting struct {
	pieces []piece
	record *record // of its answer; nil without an answer of a worker
	late   bool    // a worker may answer when it has more time
}

// piece is a message to send: the caller's own, one made from it, or an added one.
type piece struct {
	own     int // index of the caller's message; -1 for a made one
	message raw // nil for the caller's own, unchanged
}

// changed reports whether the sent messages differ from n messages of the caller.
func (f *fitting) changed(n int) bool {
	return len(f.pieces) != n || slices.ContainsFunc(f.pieces, func(p piece) bool { return p.message != nil })
}

// fit returns the messages to send for a history.
func (f *Fitter) fit(ctx context.Context, c *modelCall) fitting {
	last, usage := f.memory.find(c)
	in := c.sync(last)
	in.begins = last != nil
	in.Wait = min(f.config.Wait*3/4, mostWait) // so that a late answer comes before the call is given up
	in.Usage = usage
	s, err := f.ask(ctx, c, f.config.Wait, in)
	if err != nil {
		sent, cut := c.without(last)
		if cut && !errors.Is(err, errAborted) {
			f.report(c.session, Note{
				Code: CodeCut, Message: "the history exceeds the window, and no worker answers: its oldest turns are left out",
				Hint: "Start a worker. Nothing is lost: its next answer is made of the whole history.",
			})
		}
		sent.late = errors.Is(err, errLate)
		return sent
	}
	return f.answered(c, last, s)
}

// shorter returns the messages to send after a refusal; ok is false without an answer, or if it is no
// shorter.
func (f *Fitter) shorter(ctx context.Context, c *modelCall, sent fitting, refusal any, status int) (again fitting, ok bool) {
	if sent.record == nil && !sent.late {
		return fitting{}, false
	}
	in := c.sync(sent.record)
	in.Refusal, in.Status = refusal, status
	s, err := f.ask(ctx, c, refusedWait, in)
	if err != nil {
		return fitting{}, false
	}
	again = f.answered(c, sent.record, s)
	if s.Code != "" { // too long by estimate, which a provider need not share
		return again, c.size(again.pieces) < c.size(sent.pieces)
	}
	return again, !c.equal(again.pieces, sent.pieces)
}

var (
	errAborted = errors.New("the caller's context ended")
	errLate    = newError(CodeUnavailable, "the worker is late", "Wait longer for it, or give it more processors.")
)

// ask requests a worker, unless too many requests of the session failed.
func (f *Fitter) ask(caller context.Context, c *modelCall, limit time.Duration, in Sync) (*Synced, error) {
	return f.breakerOf(c.session).Execute(func() (*Synced, error) { return f.request(caller, c, limit, in) })
}

// request requests a worker, and reports the reason without an answer.
func (f *Fitter) request(caller context.Context, c *modelCall, limit time.Duration, in Sync) (*Synced, error) {
	ctx, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	s, err := f.config.Worker.Sync(ctx, c.session, in)
	switch {
	case err != nil && caller.Err() != nil:
		return nil, errAborted
	case err != nil && ctx.Err() != nil:
		err = errLate
		f.report(c.session, noteOf(err))
	case err != nil && !errors.Is(err, CodeNotOverflow):
		f.report(c.session, noteOf(err))
	}
	return s, err
}

// breakerOf is the breaker of a session: other sessions may be served while its large history is late.
func (f *Fitter) breakerOf(session string) *gobreaker.CircuitBreaker[*Synced] {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.breakers[session]
	if b == nil {
		if len(f.breakers) >= f.config.Remembered {
			clear(f.breakers)
		}
		b = gobreaker.NewCircuitBreaker[*Synced](gobreaker.Settings{
			Timeout:      f.config.RetryAfter,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failures },
			IsSuccessful: func(err error) bool { return err == nil || !isAway(noteOf(err).Code) },
			IsExcluded:   func(err error) bool { return errors.Is(err, errAborted) },
		})
		f.breakers[session] = b
	}
	return b
}

func noteOf(err error) Note {
	if e, ok := errors.AsType[*Error](err); ok {
		return Note{Code: e.Code, Message: e.Message, Hint: e.Hint}
	}
	return Note{Code: CodeUnavailable, Message: err.Error()}
}

// report passes a problem on, once until it is over.
func (f *Fitter) report(session string, n Note) {
	if isAway(n.Code) {
		session = ""
	}
	if f.problems.begin(session, n.Code) {
		f.config.OnProblem(n)
	}
}

// isAway reports whether an error means that the worker cannot answer the next request either.
func isAway(code Code) bool {
	return code == CodeUnavailable || code == CodeUnauthorized || code == CodeForbidden
}

// answered remembers an answer, and returns the messages to send.
func (f *Fitter) answered(c *modelCall, last *record, s *Synced) fitting {
	f.problems.answered(c.session, s.Warnings)
	for _, w := range s.Warnings {
		f.report(c.session, w)
	}
	if s.Generation > last.generation() && !c.dry { // the next call reports it
		f.config.OnCompacted(c.session, s)
	}
	pieces := s.extend(len(c.messages))
	r := recordOf(c, s, c.size(pieces))
	if !c.dry {
		f.memory.put(r, last)
	}
	return fitting{pieces: pieces, record: r}
}

// without returns the messages to send when no worker answers, and whether turns are left out.
func (c *modelCall) without(last *record) (sent fitting, cut bool) {
	if last == nil || last.setup != c.setup {
		return fitting{pieces: kept(nil, 0, len(c.messages))}, false
	}
	pieces := last.synced.extend(len(c.messages))
	most := last.room()
	if most == 0 || c.size(pieces) <= most {
		return fitting{pieces: pieces}, false
	}
	return fitting{pieces: c.cut(pieces, most)}, true
}
