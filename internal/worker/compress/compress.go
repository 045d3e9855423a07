package compress

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/align"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

const (
	// decideWait limits the wait of a request for the decision on its turn, answerTime the whole answer, with
	// the wait for a server and for a worker that serves the session. An answer with the original history would
	// be faster, but would lose the provider's cache of the whole prefix.
	decideWait = 5 * time.Second
	answerTime = 12 * time.Second
	takePause  = 100 * time.Millisecond
)

// Compressor answers gateways.
type Compressor struct {
	nc       *nats.Conn
	prefixes *coord.Prefixes
	service  *service.Service
	onError  func(error)
}

// New returns a compressor. Its user may read the streams and write the prefixes. onError receives errors that
// fail no request.
func New(js jetstream.JetStream, service *service.Service, onError func(error)) *Compressor {
	return &Compressor{js.Conn(), coord.NewPrefixes(js), service, onError}
}

// Compress returns the history to send. It does not fail: see [events.CompressResponse].
func (s *Compressor) Compress(ctx context.Context, tenant string, in *events.CompressRequest) *events.CompressResponse {
	out := &events.CompressResponse{V: events.Version, Messages: in.Messages, Transforms: []string{}, Hashes: []string{}, Unknown: in.Unknown}
	if out.Messages == nil {
		out.Messages = []codec.Raw{}
	}
	h, err := read(events.FormatOf(in.Messages, in.Fallback), scopeOf(in), in.Messages)
	if err == nil {
		out.TokensBefore = h.tokens(in.Messages)
		out.TokensAfter = out.TokensBefore
		limited, cancel := context.WithTimeoutCause(ctx, answerTime, service.ErrBusy)
		defer cancel()
		if err = s.compress(limited, tenant, in, h, out); err != nil {
			err = cmp.Or(context.Cause(limited), err)
		}
	}
	if err != nil {
		refused := service.Refusal(err)
		if refused.Code == events.CodeInternal {
			s.onError(fmt.Errorf("compress: %w", err))
		}
		out.Code, out.Message, out.Hint = refused.Code, refused.Message, refused.Hint
	}
	out.TokensSaved = max(0, out.TokensBefore-out.TokensAfter)
	out.Ratio = 1
	if out.TokensBefore > 0 {
		out.Ratio = float64(out.TokensAfter) / float64(out.TokensBefore)
	}
	return out
}

// compress finds the session of a history, and answers with a sync of it.
func (s *Compressor) compress(ctx context.Context, tenant string, in *events.CompressRequest, h *history, out *events.CompressResponse) error {
	name := ""
	if in.Config.SessionID != "" {
		id, err := events.SessionID(in.Config.SessionID)
		if err != nil {
			return err
		}
		name = id
	}
	if len(h.messages) == 0 || name == "" && len(h.digests) == 0 { // not yet a conversation
		return nil
	}
	at, err := s.find(ctx, tenant, h)
	if err != nil {
		s.onError(err)
	}
	session := cmp.Or(at.Session, name)
	var answer *events.SyncResponse
	if session != "" {
		answer, err = s.sync(ctx, tenant, session, in, h)
	}
	if session == "" || another(err) && len(h.digests) > 0 {
		if session = h.own(); name != "" {
			session = events.BranchID(name, session)
		}
		answer, err = s.sync(ctx, tenant, session, in, h)
	}
	if err != nil {
		return err
	}
	out.Session, out.View, out.Generation, out.Warnings = events.SessionName(session), answer.View, answer.Generation, answer.Warnings
	if session != name { // a session is found by its name
		s.remember(ctx, tenant, session, h, at)
	}
	if !answer.Changed {
		return nil
	}
	out.Messages = align.Apply(in.Messages, answer.Parts)
	out.TokensAfter = h.tokens(out.Messages)
	out.Transforms = []string{fmt.Sprintf("compactd:generation:%d", answer.Generation)}
	out.Hashes = hashesOf(answer.Parts)
	s.rememberView(ctx, tenant, session, in, h.format, out.Messages)
	return nil
}

// another reports whether err means that the session has another history than the request.
func another(err error) bool {
	return slices.Contains([]events.Code{events.CodeDiverged, events.CodeOtherHistory, events.CodeEditedView, events.CodeFormatChanged}, events.CodeOf(err))
}

// rememberView stores the prefix digest of an answered history: a caller that keeps the answer sends it
// with its next request.
func (s *Compressor) rememberView(ctx context.Context, tenant, session string, in *events.CompressRequest, f events.Format, messages []codec.Raw) {
	h, err := read(f, scopeOf(in), messages)
	if err != nil {
		return // a caller could not send it either
	}
	at, err := s.find(ctx, tenant, h)
	if err != nil {
		s.onError(err)
		return
	}
	s.remember(ctx, tenant, session, h, at)
}

// sync passes a history to a session. It waits while no worker serves the session.
func (s *Compressor) sync(ctx context.Context, tenant, session string, in *events.CompressRequest, h *history) (answer *events.SyncResponse, err error) {
	a := events.Address{Tenant: tenant, Session: session}
	wait := decideWait.Milliseconds()
	request := &events.SyncRequest{
		About: a.About(), Model: modelOf(in), Format: h.format, Messages: in.Messages,
		Policy: policyOf(in), OnDivergence: events.DivergeRefuse, WaitMS: &wait, Frozen: in.Config.Frozen, Usage: s.usage(ctx, a),
	}
	err = retry.Every(takePause).Do(ctx, nil, func() (err error) {
		answer, err = s.service.Sync(ctx, request)
		return retry.When(err != nil && service.Refusal(err).Code == events.CodeUnavailable, err)
	})
	if err == nil && request.Usage != nil {
		if err := limit.Of(ctx).Idle(ctx, func() error { return s.prefixes.DropUsage(ctx, a) }); err != nil {
			s.onError(err)
		}
	}
	return answer, err
}

// modelOf returns the model of a request, with the window that the request sets.
func modelOf(in *events.CompressRequest) *events.Model {
	m := events.ModelOf(in.Model)
	if m != nil {
		m.ContextWindow = in.TokenBudget
	}
	return m
}

// policyOf returns the policy of a session whose model retrieves originals, else nil.
func policyOf(in *events.CompressRequest) codec.Raw {
	if in.Config.Mode == events.ModeRetrieve {
		return codec.Raw(`{"recall":"hash"}`)
	}
	return nil
}

// scopeOf returns the scope of a request: histories in different scopes share no session.
func scopeOf(in *events.CompressRequest) string {
	if in.Config.Mode == events.ModeRetrieve {
		return "hashes " + in.Config.SessionID
	}
	return in.Config.SessionID
}

// tokens estimates the tokens of messages.
func (h *history) tokens(messages []codec.Raw) (n int64) {
	rate := measure.NewRate(measure.Profiles["default"], string(h.format))
	for _, raw := range messages {
		m, err := h.format.Read(raw)
		if err != nil {
			continue
		}
		n += int64(rate.Message(m))
	}
	return n
}

var hashPattern = regexp.MustCompile(`hash=([0-9a-f]{24})`)

// hashesOf returns the hashes in messages that compactd made.
func hashesOf(parts []events.SyncPart) []string {
	out := []string{}
	for _, p := range parts {
		for _, m := range hashPattern.FindAllSubmatch(p.Message, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out
}

// SaveUsage stores the usage that a provider counted, until the session's next request.
func (s *Compressor) SaveUsage(ctx context.Context, a events.Address, in *events.UsageRequest) error {
	data, err := codec.Marshal(in)
	if err != nil {
		return err
	}
	return limit.Of(ctx).Idle(ctx, func() error { return s.prefixes.SaveUsage(ctx, a, data) })
}

// usage returns the stored usage of the last answer of a session, or nil.
func (s *Compressor) usage(ctx context.Context, a events.Address) *events.SyncUsage {
	data, err := idle(ctx, func() ([]byte, error) { return s.prefixes.Usage(ctx, a) })
	if err != nil {
		s.onError(err)
		return nil
	}
	in, err := events.Decode[events.UsageRequest](data)
	if data == nil || err != nil {
		return nil
	}
	return &events.SyncUsage{View: in.View, Raw: in.Usage}
}

// idle calls fn, which waits for the server, and releases the processor during it.
func idle[A any](ctx context.Context, fn func() (A, error)) (out A, err error) {
	err = limit.Of(ctx).Idle(ctx, func() (err error) {
		out, err = fn()
		return err
	})
	return out, err
}

// errNotFound is the same for a hash of another tenant and for an unknown one.
var errNotFound = events.Refuse(events.CodeNotFound, "no original has this hash",
	"Use a hash of an answer to compress. An original is kept as long as the log keeps its turn.")
