package redecide

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
)

// Replayed is what came of deciding a log again.
type Replayed struct {
	// Numbers of things compared: outcomes, the events and sessions they were published about, and
	// the configs in force. An event without outcomes counts too.
	Events   int `json:"events"`
	Sessions int `json:"sessions"`
	Outcomes int `json:"outcomes"`
	Configs  int `json:"configs"`

	// Differing counts the sessions that differ; Differences has the first
	// difference of each, for as many as [maxDifferences].
	Differing   int          `json:"differing"`
	Differences []Difference `json:"differences"`

	// Older counts sessions that began before the log does: they cannot be decided
	// from their middle. Undecidable counts those with an event whose config is not
	// to be had, by why. Neither is compared.
	Older       int            `json:"older"`
	Undecidable map[string]int `json:"undecidable,omitzero"`
	// Textless counts compactions that were compared without their messages: a text
	// has left the log since.
	Textless int `json:"textless"`
}

// Difference is the first place where a session's outcomes are not what the log
// states.
type Difference struct {
	Tenant   string         `json:"tenant"`
	Session  string         `json:"session"`
	Seq      compaction.Seq `json:"seq"` // of the event
	Kind     events.Kind    `json:"kind"`
	Path     string         `json:"path"` // of the field, such as budget.level; "" is the whole outcome
	Recorded string         `json:"recorded"`
	Decided  string         `json:"decided"`
}

// maxDifferences bounds a report of many.
const maxDifferences = 100

// Equal reports whether everything that was to be compared was, and is as the log
// states.
func (r *Replayed) Equal() bool { return r.Differing == 0 && len(r.Undecidable) == 0 }

// Replay decides again what was decided, each event under the config recorded for
// it, and compares the bytes. It reads only, and may run beside workers: what they
// commit after the call is not looked at. Sessions are decided from their first
// event, whatever the span; what is compared lies in it. Counters are those that a
// recorded config may name.
//
// It needs memory for the ledgers of one partition, with those that it was split into, and 64 MiB for texts.
func Replay(ctx context.Context, nc *nats.Conn, s Span, counters ...measure.Counter) (*Replayed, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &replayer{
		nc: nc, js: js, span: s, first: streams.Log.First,
		configs: outcomelog.NewConfigResolver(js, parseWith(counters)), used: map[string]bool{}, payloads: payload.NewRenderer(nc, 64<<20),
		out: &Replayed{Differences: []Difference{}},
	}
	for _, ids := range s.families(streams.Partitions) {
		f, err := readFamily(ctx, nc, js, streams.Partitions, ids)
		if err == nil && f.end > 0 {
			err = r.replay(ctx, f)
		}
		if err != nil {
			return nil, fmt.Errorf("replay partitions %v: %w", ids, err)
		}
	}
	r.out.Configs = len(r.used)
	return r.out, nil
}

// replayer is one call of [Replay].
type replayer struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	span     Span
	first    uint64 // sequence of the log
	configs  *outcomelog.ConfigResolver
	used     map[string]bool // configs
	payloads *payload.Renderer
	out      *Replayed

	// Of the family at hand.
	*family
	decides  *decide.Decider
	outcomes map[int]*outcomelog.Reader // by partition
	sessions map[events.Address]*session
	inside   bool // the span has begun
}

// session is what is known of one while its family is replayed.
type session struct {
	out      bool // not compared: older than the log, or undecidable
	reported bool // its first difference is published
	counted  bool // counted
}

func (r *replayer) replay(ctx context.Context, f *family) error {
	r.family, r.decides, r.sessions, r.outcomes = f, decide.New(nil), map[events.Address]*session{}, map[int]*outcomelog.Reader{}
	r.inside = r.span.From == Place{}
	for id, h := range f.markers {
		r.outcomes[id] = outcomelog.NewReader(ctx, r.js, stream.Selection{
			Stream: topology.OutcomesStream, Filters: r.span.outcomeFilters(id), UpTo: h.End.Seq,
		}, h)
		defer r.outcomes[id].Stop()
	}
	log := stream.Selection{Filters: r.span.logFilters(f.ids), UpTo: f.end}
	ended, err := r.span.read(ctx, r.js, log, func(e decide.Event) error { return r.event(ctx, e) })
	if ended || err != nil {
		return err
	}
	for _, id := range f.ids {
		if err := r.missing(ctx, id, compaction.Seq(f.markers[id].End.Cursor)+1); err != nil {
			return err
		}
	}
	return nil
}

// event decides one event again, and compares.
func (r *replayer) event(ctx context.Context, e decide.Event) error {
	id, markers := r.decider(&e)
	if markers == nil {
		return nil
	}
	if err := r.missing(ctx, id, e.Seq); err != nil {
		return err
	}
	recorded, err := r.outcomes[id].Of(ctx, e.Seq)
	if err != nil {
		return err
	}
	s := r.session(e)
	hash := markers.ConfigAt(e.Seq)
	config, err := r.configs.Get(ctx, hash)
	if unknown, ok := errors.AsType[*outcomelog.UnknownConfigError](err); ok {
		r.undecidable(s, unknown)
		return nil
	}
	if err != nil || s.out {
		return err
	}
	r.decides.Config = config
	outs, text := r.decides.Process(e)
	if text {
		r.payloads.Put(e)
	}
	if r.span.From.after(&e) {
		return nil
	}
	r.inside = true
	r.used[hash] = true
	r.out.Events++
	if !s.counted {
		s.counted = true
		r.out.Sessions++
	}
	return r.compare(ctx, id, e, s, outs, recorded)
}

// session finds what is known of the session of an event. Where the log has lost
// its beginning, so has a session whose first event is not that of a new one.
func (r *replayer) session(e decide.Event) *session {
	s := r.sessions[e.Address]
	if s == nil {
		s = &session{out: r.first > 1 && !begins(e)}
		r.sessions[e.Address] = s
		if s.out {
			r.out.Older++
		}
	}
	if e.Kind == events.KindForget { // it begins again, whatever was before
		s.out = false
	}
	return s
}

// begins reports whether an event is the first of a session.
func begins(e decide.Event) bool {
	if e.Kind != events.KindTurn {
		return e.Kind == events.KindForget
	}
	t, err := events.DecodeTurn(e.Data)
	return err == nil && t.Number <= 1 && t.Generation == 0 && max(t.Number, t.ReplacesFrom) == 1
}

func (r *replayer) undecidable(s *session, why *outcomelog.UnknownConfigError) {
	if s.out {
		return
	}
	s.out = true
	if r.out.Undecidable == nil {
		r.out.Undecidable = map[string]int{}
	}
	r.out.Undecidable[why.Error()]++
}

// missing reports outcomes of a partition recorded about events before seq that the log does not hold.
// Outcomes older than the log have aged away.
func (r *replayer) missing(ctx context.Context, id int, seq compaction.Seq) error {
	gone, err := r.outcomes[id].Before(ctx, seq)
	for _, o := range gone {
		if uint64(o.Cause) < r.first && o.Err == nil || !r.inside {
			continue
		}
		s := r.sessions[o.Address]
		if s == nil {
			s = &session{}
			r.sessions[o.Address] = s
		}
		if !s.out {
			r.differ(s, o.Address, o.Cause, o.Kind, "", string(o.Data), "")
		}
	}
	return err
}

// differ notes the first difference of a session.
func (r *replayer) differ(s *session, a events.Address, seq compaction.Seq, k events.Kind, path, recorded, decided string) {
	if s.reported {
		return
	}
	s.reported = true
	r.out.Differing++
	if len(r.out.Differences) < maxDifferences {
		r.out.Differences = append(r.out.Differences, Difference{a.Tenant, a.Session, seq, k, path, clip(recorded), clip(decided)})
	}
}

// parseWith reads recorded configs that may name one of the counters.
func parseWith(counters []measure.Counter) func([]byte) (*compaction.Config, error) {
	return stored.ConfigReader(counters...)
}
