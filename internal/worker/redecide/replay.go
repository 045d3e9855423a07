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
	"compactd/internal/events/weigh"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
)

// Replayed is the result of deciding a log again.
type Replayed struct {
	// Numbers of compared outcomes, their events and sessions, and the configs of their decisions.
	// An event without outcomes counts too.
	Events   int `json:"events"`
	Sessions int `json:"sessions"`
	Outcomes int `json:"outcomes"`
	Configs  int `json:"configs"`

	// Differing counts the sessions that differ. Differences has the first difference of
	// each, for at most [maxDifferences] sessions.
	Differing   int          `json:"differing"`
	Differences []Difference `json:"differences"`

	// Older counts sessions whose beginning is no longer in the log. Undecidable counts
	// sessions with an event whose config is unknown, by reason. Neither is compared.
	Older       int            `json:"older"`
	Undecidable map[string]int `json:"undecidable,omitzero"`
	// Textless counts compactions that were compared without their messages, since a text is
	// no longer in the log.
	Textless int `json:"textless"`
}

// Difference is the first difference between the recorded and the new outcomes of a session.
type Difference struct {
	Tenant   string      `json:"tenant"`
	Session  string      `json:"session"`
	Seq      measure.Seq `json:"seq"` // of the event
	Kind     events.Kind `json:"kind"`
	Path     string      `json:"path"` // of the field, such as budget.level; "" means the whole outcome
	Recorded string      `json:"recorded"`
	Decided  string      `json:"decided"`
}

// maxDifferences limits the reported differences.
const maxDifferences = 100

// Equal reports whether all compared outcomes are equal and no session is undecidable.
func (r *Replayed) Equal() bool { return r.Differing == 0 && len(r.Undecidable) == 0 }

// Replay decides the decided events again, each under the config recorded for it, and compares the
// bytes of the outcomes. It only reads, and may run beside workers: it ignores commits after the
// call. Sessions are decided from their first event, but only outcomes in the span are
// compared. counters are those that a recorded config may name.
//
// It needs memory for the ledgers of one partition and of those split off from it, and 64 MiB for texts.
func Replay(ctx context.Context, nc *nats.Conn, s Span, counters ...weigh.Counter) (*Replayed, error) {
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

	// Of the current family.
	*family
	decides  *decide.Decider
	outcomes map[int]*outcomelog.Reader // by partition
	sessions map[events.Address]*session
	inside   bool // the span has begun
}

// session is the state of a session during the replay of its family.
type session struct {
	out      bool // not compared: older than the log, or undecidable
	reported bool // a difference of it is in the result
	counted  bool // it is counted in Sessions
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
		if err := r.missing(ctx, id, measure.Seq(f.markers[id].End.Cursor)+1); err != nil {
			return err
		}
	}
	return nil
}

// event decides one event again, and compares its outcomes.
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

// session returns the state of an event's session. If the log lost its beginning, a session whose first
// event does not begin a session is older than the log.
func (r *replayer) session(e decide.Event) *session {
	s := r.sessions[e.Address]
	if s == nil {
		s = &session{out: r.first > 1 && !begins(e)}
		r.sessions[e.Address] = s
		if s.out {
			r.out.Older++
		}
	}
	if e.Kind == events.KindForget { // the session begins again
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

// missing reports recorded outcomes of events before seq that the log does not hold. It ignores outcomes of
// events older than the log.
func (r *replayer) missing(ctx context.Context, id int, seq measure.Seq) error {
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

// differ records the first difference of a session.
func (r *replayer) differ(s *session, a events.Address, seq measure.Seq, k events.Kind, path, recorded, decided string) {
	if s.reported {
		return
	}
	s.reported = true
	r.out.Differing++
	if len(r.out.Differences) < maxDifferences {
		r.out.Differences = append(r.out.Differences, Difference{a.Tenant, a.Session, seq, k, path, clip(recorded), clip(decided)})
	}
}

// parseWith returns a parser of recorded configs that may name one of the counters.
func parseWith(counters []weigh.Counter) func([]byte) (*compaction.Config, error) {
	return stored.ConfigReader(counters...)
}
