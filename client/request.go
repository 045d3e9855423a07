package client

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// answer is the result of a request.
type answer struct {
	compaction Compaction
	err        *Error
}

// wireRequest is a session.overflow, compact, rewind or end.
type wireRequest struct {
	V          int       `json:"v"`
	ID         string    `json:"id"`
	Error      codec.Raw `json:"error,omitzero"`
	Status     int       `json:"status,omitzero"`
	Focus      string    `json:"focus,omitzero"`
	Generation *int64    `json:"generation,omitzero"`
	Steps      int64     `json:"steps,omitzero"`
}

// Overflow reports that the provider refused a call as too long, and returns when
// Context has a history that should fit; no summary is waited for. refusal is what
// the SDK returned, or the body of the answer: an error, a string, or a value that
// marshals to it. status is that of HTTP, 0 when it is not known.
//
// CodeNotOverflow: a shorter history would not help; the message names the class of the
// error. CodeBudgetExceeded: nothing more could be removed. Overflow waits for a worker
// until ctx ends.
func (s *Session) Overflow(ctx context.Context, refusal any, status int) (Compaction, error) {
	raw, err := refusalOf(refusal)
	if err != nil {
		return Compaction{}, err
	}
	s.mu.Lock()
	called := s.called
	s.mu.Unlock()
	c, err := s.request(ctx, events.KindOverflow, wireRequest{Error: raw, Status: status, Generation: &called})
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, CodeNewerGeneration) && s.view.generation > called {
		return c, nil // a compaction had come before the report did
	}
	return c, err
}

// maxRefusal bounds the sent beginning and end of a refusal.
const maxRefusal = events.MaxOverflowBytes / 4

// refusalOf is the error of a provider in its sent form: its body if the SDK keeps it.
func refusalOf(v any) (codec.Raw, error) {
	if err, ok := v.(error); ok {
		var body interface{ RawJSON() string } // the SDKs of OpenAI and Anthropic
		if errors.As(err, &body) && body.RawJSON() != "" {
			v = body.RawJSON()
		} else {
			v = err.Error()
		}
	}
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	text, ok := v.(string)
	if !ok {
		return encode(v)
	}
	if len(text) > maxRefusal {
		text = text[:maxRefusal/2] + " … " + text[len(text)-maxRefusal/2:]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if raw := codec.Raw(bytes.TrimSpace([]byte(text))); raw.IsValid() && (raw.Kind() == '{' || raw.Kind() == '[') {
		return compact(raw)
	}
	return encode(text)
}

// Compact requests a compaction now, whatever the usage. focus is content that the summary must keep, at most
// 4 KiB. Compact waits for the summary until ctx ends; the agent may go on meanwhile. CodeNothingToDo and
// CodeNotEnoughMessages: nothing could be saved.
func (s *Session) Compact(ctx context.Context, focus string) (Compaction, error) {
	return s.request(ctx, events.KindCompact, wireRequest{Focus: focus})
}

// Rewind returns to the view of an earlier generation, with every turn published since; 0 is the history as
// published. It waits for a worker until ctx ends.
func (s *Session) Rewind(ctx context.Context, generation int64) (Compaction, error) {
	return s.request(ctx, events.KindRewind, wireRequest{Generation: &generation})
}

// Undo reverts the newest compactions of the view, steps of them.
func (s *Session) Undo(ctx context.Context, steps int64) (Compaction, error) {
	return s.request(ctx, events.KindRewind, wireRequest{Steps: steps})
}

// End ends the session: workers delete its state, and a later turn begins a new session
// under the same name.
func (s *Session) End(ctx context.Context) error {
	release, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	m, err := s.newRequest(events.KindEnd, wireRequest{})
	if err != nil {
		return err
	}
	seq, err := s.deliver(ctx, m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = 0                                     // no worker will apply it
	s.view = view{retracted: retractions{{seq, 0}}} // a late outcome belongs to the session that ended
	s.outcomes.erased, s.outcomes.reset = max(s.outcomes.erased, seq), max(s.outcomes.reset, seq)
	s.called, s.outcomes.generation, s.format, s.sent = 0, 0, "", nil
	s.state.sent()
	s.budget, s.budgetAt = Budget{}, seq
	return nil
}

func (s *Session) newRequest(k events.Kind, w wireRequest) (*message, error) {
	w.V, w.ID = events.Version, uuid.NewString()
	payload, err := codec.Marshal(w)
	if err != nil {
		return nil, err
	}
	return s.newMessage(k, w.ID, payload, nil)
}

// request publishes an event and waits for the outcome that answers it.
func (s *Session) request(ctx context.Context, k events.Kind, w wireRequest) (Compaction, error) {
	m, err := s.newRequest(k, w)
	if err != nil {
		return Compaction{}, err
	}
	got := make(chan answer, 1)
	s.mu.Lock()
	s.waiting[m.id] = got
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, m.id)
		s.mu.Unlock()
	}()
	connects := s.c.nc.Stats().Reconnects
	seq, err := s.publishEvent(ctx, m)
	if err != nil {
		return Compaction{}, err
	}
	return s.await(ctx, got, seq, connects)
}

// publishEvent publishes between two turns, and returns the sequence in the log.
func (s *Session) publishEvent(ctx context.Context, m *message) (seq uint64, err error) {
	release, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	return s.deliver(ctx, m)
}

// catchUpPause is the time between fetches of missed outcomes while an answer is awaited.
const catchUpPause = time.Second

// await returns the answer to the event at seq, which was published after so many connects. An answer published
// while the connection was down is found among the outcomes, or requested from a worker. By requests alone, as
// [request.SendUntil] waits, an overflow would cost 4 messages instead of 1, and a summary of 10 s 105.
func (s *Session) await(ctx context.Context, got <-chan answer, seq, connects uint64) (Compaction, error) {
	look := time.NewTicker(catchUpPause)
	defer look.Stop()
	for {
		select {
		case a := <-got:
			return a.result()
		case <-ctx.Done():
			return Compaction{}, ctx.Err()
		case <-look.C:
			if s.catchUp(ctx); len(got) > 0 || s.c.nc.Stats().Reconnects == connects {
				continue
			}
			if a, ok := s.requestAnswer(ctx, seq); ok {
				return a.result()
			}
		}
	}
}

// requestAnswer requests the answer to an event from a worker, with a history that contains it. It is false
// while there is none.
func (s *Session) requestAnswer(ctx context.Context, seq uint64) (a answer, ok bool) {
	var out events.OutcomeResponse
	err := s.c.request(ctx, events.SubjectOutcome, events.OutcomeRequest{About: s.at.About(), Seq: seq, WaitMS: new(int64)}, &out)
	switch e := out.Compaction; {
	case errors.Is(err, CodeGone), errors.Is(err, CodeUnknownTurn): // erased meanwhile
		var gone *Error
		return answer{err: gone}, errors.As(err, &gone)
	case err != nil:
		return answer{}, false
	case out.Code != "":
		return answer{err: newError(Code(out.Code), out.Message, out.Hint)}, true
	case e == nil: // it waits for a summary
		return answer{}, false
	default:
		return answer{compaction: ofEntry(e)}, !e.Compacted || s.fetchContext(ctx) == nil
	}
}

// ofEntry is a compaction as the worker lists it. Of its budget are level and sizes alone, unless it is exceeded.
func ofEntry(e *events.HistoryEntry) Compaction {
	b := e.Budget
	if b == nil {
		b = &events.Budget{Level: e.Level, AvailableInput: e.AvailableInput, EstimatedInput: e.TokensAfter, WithinBudget: e.TokensAfter <= e.AvailableInput}
	}
	return compacted(&events.Compacted{
		Generation: e.Generation, Through: e.Through, Compacted: e.Compacted, Code: e.Code, Reason: e.Reason, StagesUsed: e.StagesUsed,
		TokensBefore: e.TokensBefore, TokensAfter: e.TokensAfter, Budget: *b,
	})
}

// result returns an error unless the history was compacted and fits.
func (a answer) result() (Compaction, error) {
	if a.err != nil {
		return Compaction{}, a.err
	}
	if c := a.compaction.Code; c != "" {
		info := events.Codes[events.Code(c)]
		return a.compaction, newError(c, info.Meaning, info.Hint)
	}
	return a.compaction, nil
}

// answer passes an outcome to the call that waits for it.
func (s *Session) answer(id string, a answer) bool {
	got, ok := s.waiting[id]
	if ok {
		select {
		case got <- a:
		default: // it came twice
		}
	}
	return ok && id != ""
}
