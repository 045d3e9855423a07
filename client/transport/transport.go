package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"compactd/client"
)

// Worker answers what of a history to send: a [*client.HTTP], or a [*client.Client] over NATS.
type Worker interface {
	Sync(ctx context.Context, session string, in client.Sync) (*client.Synced, error)
}

// Config has the settings of a [Transport].
type Config struct {
	// Worker is required.
	Worker Worker
	// Session names the conversation of requests whose context names none; see [WithSession].
	// Without both a request passes unchanged.
	Session string
	// Base sends the requests. Default [http.DefaultTransport].
	Base http.RoundTripper
	// Model has what the requests do not contain, such as the window. A zero field is read from
	// the request.
	Model client.Model
	// Policy has settings of the sessions, as in [client.Config].
	Policy any
	// Wait is the most that a call waits for a worker. Default 500 ms.
	Wait time.Duration
	// RetryAfter is the time without requests to a worker after three failures. Default 5 s.
	RetryAfter time.Duration
	// OnProblem is called when a worker does not answer or refuses, and with warnings of its
	// answers, for logs and the user. Must not block.
	OnProblem func(client.Note)
	// OnCompacted is called with the first answer of a new generation of a session. Its Budget is
	// that of the shorter history. Must not block.
	OnCompacted func(session string, s *client.Synced)
}

// CodeCut: no worker answered, the history exceeded the window, and its oldest turns were left out.
const CodeCut client.Code = "client_cut"

const (
	failures    = 3               // in a row, after which no worker is requested
	refusedWait = 6 * time.Second // a worker decides for five
	mostWait    = 8 * time.Second // that a worker accepts
)

// Transport is an [http.RoundTripper] that fits histories into windows.
type Transport struct {
	config  Config
	breaker *gobreaker.CircuitBreaker[*client.Synced]
	memory  memory
	seen    sync.Map // codes of the problems that were reported since a worker answered
}

// New returns a transport.
func New(c Config) *Transport {
	c.Base = cmp.Or(c.Base, http.DefaultTransport)
	c.Wait = cmp.Or(c.Wait, 500*time.Millisecond)
	c.RetryAfter = cmp.Or(c.RetryAfter, 5*time.Second)
	if c.OnProblem == nil {
		c.OnProblem = func(client.Note) {}
	}
	if c.OnCompacted == nil {
		c.OnCompacted = func(string, *client.Synced) {}
	}
	return &Transport{
		config: c,
		breaker: gobreaker.NewCircuitBreaker[*client.Synced](gobreaker.Settings{
			Timeout:      c.RetryAfter,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failures },
			IsSuccessful: func(err error) bool { return err == nil || !away(err) },
			IsExcluded:   func(err error) bool { return errors.Is(err, errAborted) },
		}),
	}
}

type sessionKey struct{}

// WithSession names the conversation of the requests that are made with the context.
func WithSession(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

func (t *Transport) session(ctx context.Context) string {
	if s, ok := ctx.Value(sessionKey{}).(string); ok {
		return s
	}
	return t.config.Session
}

// RoundTrip sends a request to its provider, with the messages that a worker answered. Its errors
// are those of [Config].Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	session, api := t.session(r.Context()), apiOf(r)
	if session == "" || api == nil {
		return t.config.Base.RoundTrip(r)
	}
	c, err := read(r, api, session, t.config.Model)
	if err != nil {
		return nil, err
	}
	if c.messages == nil {
		return c.send(t.config.Base, c.body)
	}
	sent := t.fit(c)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	r1, err := c.send(t.config.Base, sent.body)
	if err != nil || sent.record == nil {
		return r1, err
	}
	first := inspect(r1)
	again, ok := t.shorter(c, sent, first)
	if !ok {
		first.watch(t.memory.usageOf(sent.record))
		return r1, nil
	}
	_ = first.Close()
	r2, err := c.send(t.config.Base, again.body)
	if err == nil {
		inspect(r2).watch(t.memory.usageOf(again.record))
	}
	return r2, err
}

// attempt is what is sent of a history.
type attempt struct {
	body   []byte
	record *record // of the answer that it was made of; nil where no worker answered
}

// fit returns what of a history to send.
func (t *Transport) fit(c *call) attempt {
	last, usage := t.memory.find(c)
	in := c.sync(last, t.config.Policy)
	in.Wait = min(t.config.Wait*3/4, mostWait) // so that a late answer comes before the call is given up
	if usage != nil {
		in.Usage = usage
	}
	s, err := t.ask(c, t.config.Wait, in)
	if err != nil {
		return t.without(c, last)
	}
	return t.answered(c, last, s)
}

// shorter returns what to send after a refusal; ok is false without one, or where it would be
// refused again.
func (t *Transport) shorter(c *call, sent attempt, r *answer) (again attempt, ok bool) {
	if r.refusal == nil {
		return attempt{}, false
	}
	in := c.sync(sent.record, t.config.Policy)
	in.Refusal, in.Status = []byte(r.refusal), r.status
	s, err := t.ask(c, refusedWait, in)
	if err != nil {
		return attempt{}, false
	}
	again = t.answered(c, sent.record, s)
	return again, s.Code == "" && !bytes.Equal(again.body, sent.body)
}

var errAborted = errors.New("the caller's context ended")

// ask requests a worker, unless too many requests failed, and reports why there is no answer.
func (t *Transport) ask(c *call, limit time.Duration, in client.Sync) (*client.Synced, error) {
	caller := c.request.Context()
	return t.breaker.Execute(func() (*client.Synced, error) {
		ctx, cancel := context.WithTimeout(caller, limit)
		defer cancel()
		s, err := t.config.Worker.Sync(ctx, c.session, in)
		switch {
		case err != nil && caller.Err() != nil:
			return nil, errAborted
		case err != nil && !errors.Is(err, client.CodeNotOverflow):
			t.report(noteOf(err))
		}
		return s, err
	})
}

func noteOf(err error) client.Note {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return client.Note{Code: e.Code, Message: e.Message, Hint: e.Hint}
	}
	return client.Note{Code: client.CodeUnavailable, Message: err.Error()}
}

// report passes a problem on: each code once until a worker answers.
func (t *Transport) report(n client.Note) {
	if _, seen := t.seen.LoadOrStore(n.Code, true); !seen {
		t.config.OnProblem(n)
	}
}

// away reports whether an error means that the worker cannot answer the next request either.
func away(err error) bool {
	code := noteOf(err).Code
	return code == client.CodeUnavailable || code == client.CodeUnauthorized || code == client.CodeForbidden
}

// answered remembers an answer, and returns what to send of it.
func (t *Transport) answered(c *call, last *record, s *client.Synced) attempt {
	body := c.body
	if s.Changed {
		body = c.with(s.Messages)
	}
	t.seen.Clear()
	for _, w := range s.Warnings {
		t.report(w)
	}
	if s.Generation > last.generation() {
		t.config.OnCompacted(c.session, s)
	}
	return attempt{body, t.memory.put(c, last, s, len(body))}
}

// without returns what to send when no worker answers.
func (t *Transport) without(c *call, last *record) attempt {
	if last == nil || last.setup != c.setup {
		return attempt{body: c.body}
	}
	messages, body := c.messages, c.body
	if last.synced.Changed {
		messages = last.synced.Extend(c.messages)
		body = c.with(messages)
	}
	most := last.room()
	if most == 0 || len(body) <= most {
		return attempt{body: body}
	}
	t.report(client.Note{
		Code: CodeCut, Message: "the history exceeds the window, and no worker answers: its oldest turns are left out",
		Hint: "Start a worker. Nothing is lost: its next answer is made of the whole history.",
	})
	return attempt{body: c.with(c.cut(messages, most-(len(c.body)-(c.to-c.from))))}
}
