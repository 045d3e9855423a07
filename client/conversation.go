package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Conversation keeps a history of messages of type M inside a window, for agents and frameworks
// that hold objects with more in them than the provider gets. Messages that are kept are the
// caller's own objects. It has no state, and no error of compactd reaches its caller.
//
//	c := client.Conversation[*Message]{Fitter: fitter, Session: "chat-42", Codec: codec}
//	sent := c.Fit(ctx, history)
//	answer, err := call(sent.Messages)
//	if again, ok := sent.Refused(ctx, err, status); ok {
//		sent = again
//		answer, err = call(sent.Messages)
//	}
//	sent.Used(answer.Usage)
type Conversation[M any] struct {
	// Fitter is required. One serves many conversations.
	Fitter *Fitter
	// Session names the conversation, and Branch that of a sub-agent in it; see [Sync].
	Session, Branch string
	// Config is of the next call. OnCompaction and OnNote are not called.
	Config Config
	// DryRun: nothing is recorded, and no call follows; to count tokens.
	DryRun bool
	// Codec converts messages. Default: their own methods for JSON.
	Codec Codec[M]
}

// Codec converts between the messages of an agent and those of its provider.
type Codec[M any] struct {
	// To returns a value that marshals to the message as the provider gets it.
	To func(M) (any, error)
	// From returns a message made by compactd. Own is the caller's message that it edits, nil if there is
	// none: fields that the provider does not get should be copied from it.
	From func(message json.RawMessage, own *M) (M, error)
}

// Fitted has the messages to send with one call.
type Fitted[M any] struct {
	Messages []M
	// Changed: they differ from the caller's.
	Changed bool
	// Generation and Budget are of the call with these messages; zero without an answer of a worker.
	Generation int64
	Budget     Budget

	of     *Conversation[M]
	own    []M
	call   *modelCall
	sent   fitting
	second bool // after a refusal
}

// Fit returns the messages to send for a whole history with its new prompt. The caller keeps its history.
func (c *Conversation[M]) Fit(ctx context.Context, history []M) *Fitted[M] {
	f := &Fitted[M]{Messages: history, of: c, own: history}
	if len(history) == 0 {
		return f
	}
	messages := make([]raw, len(history))
	for i, m := range history {
		var err error
		if messages[i], err = c.encode(m); err != nil {
			return f.failed(fmt.Errorf("message %d: %w", i, err))
		}
	}
	var err error
	if f.call, err = newModelCall(c.Session, c.Branch, c.Config, messages); err != nil {
		return f.failed(err)
	}
	f.call.dry = c.DryRun
	return f.with(c.Fitter.fit(ctx, f.call))
}

// Refused returns the messages to send instead, once, after the provider refused the call as too long;
// refusal and status are those of [Session.Overflow]. It is false for any other refusal, for the second of a
// call, and if nothing shorter would be accepted: then the agent handles the refusal.
func (f *Fitted[M]) Refused(ctx context.Context, refusal any, status int) (*Fitted[M], bool) {
	if refusal == nil || f.second || f.call == nil {
		return nil, false
	}
	again, ok := f.of.Fitter.shorter(ctx, f.call, f.sent, refusal, status)
	if !ok {
		return nil, false
	}
	next := &Fitted[M]{Messages: f.own, of: f.of, own: f.own, call: f.call, second: true}
	return next.with(again), true
}

// Used takes the provider's count for the call, a value that marshals to its shape.
func (f *Fitted[M]) Used(usage any) { f.Counter()(usage) }

// Counter returns Used, for an answer that goes on for long: it keeps no message.
func (f *Fitted[M]) Counter() func(usage any) {
	fitter, session, of := f.of.Fitter, f.of.Session, f.sent.record
	return func(usage any) {
		if of == nil {
			return
		}
		counts, err := encode(usage)
		if err != nil {
			fitter.failed(session, err)
		} else if counts != nil {
			fitter.memory.count(of, counts)
		}
	}
}

// with converts the messages to send.
func (f *Fitted[M]) with(sent fitting) *Fitted[M] {
	out := make([]M, len(sent.pieces))
	for i, p := range sent.pieces {
		if p.message == nil {
			out[i] = f.own[p.own]
			continue
		}
		var own *M
		if p.own >= 0 {
			own = &f.own[p.own]
		}
		var err error
		if out[i], err = f.of.decode(p.message, own); err != nil {
			return f.failed(err)
		}
	}
	f.Messages, f.Changed, f.sent = out, sent.changed(len(f.own)), sent
	if sent.record != nil {
		f.Generation, f.Budget = sent.record.synced.Generation, sent.record.synced.Budget
	}
	return f
}

// failed reports a message that could not be converted: the caller's own are sent.
func (f *Fitted[M]) failed(err error) *Fitted[M] {
	f.of.Fitter.failed(f.of.Session, err)
	return f
}

func (f *Fitter) failed(session string, err error) {
	f.report(session, Note{Code: CodeCodec, Message: err.Error(), Hint: "Correct the codec of the conversation."})
}

func (c *Conversation[M]) encode(m M) (message raw, err error) {
	var v any = m
	if c.Codec.To != nil {
		if v, err = c.Codec.To(m); err != nil {
			return nil, err
		}
	}
	if message, err = encode(v); err == nil && message == nil {
		err = errors.New("it is nil")
	}
	return message, err
}

func (c *Conversation[M]) decode(message raw, own *M) (m M, err error) {
	if c.Codec.From != nil {
		return c.Codec.From(json.RawMessage(message), own)
	}
	return m, json.Unmarshal(message, &m)
}
