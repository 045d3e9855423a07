package syncs

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
)

// syncTurn is the event of a turn of a sync.
type syncTurn = events.WireTurn[codec.Raw]

// syncedTurn describes a turn that a sync has published.
type syncedTurn struct {
	seq      uint64
	number   int64
	whole    events.Digest // of the session up to it
	digest   events.Digest // of its messages
	messages int
}

// expect returns the state of the session after the turn.
func (t *syncedTurn) expect() events.Expect { return events.Expect{Turn: t.number, Digest: t.whole} }

// turnMargin is the space for the fields of a turn other than messages, settings and usage.
const turnMargin = 16 << 10

// publish stores the new messages as turns on the base that the history was compared with, or after the turns of
// earlier syncs on that base. It returns the last turn, or nil if there is nothing to publish.
func (r *request) publish(ctx context.Context, st *state, t unpublished) (*syncedTurn, error) {
	behind, at, err := r.follow(st, t)
	if err != nil {
		return nil, err
	}
	t.at = at
	last := &syncedTurn{seq: max(st.last.Seq, r.ended), number: behind.base.Turn, whole: behind.base.Digest}
	if n := len(behind.turns); n > 0 {
		last = &behind.turns[n-1]
	}
	first := syncTurn{V: events.VersionExpect}
	set, err := r.settings(st, &first.Turn)
	if err != nil {
		return nil, err
	}
	settings := settingsOf(&first.Turn)
	if settings == behind.settings { // the first of the late turns has them
		first.Turn, set = events.Turn{}, false
	}
	switch {
	case t.at < r.until || set:
	case len(behind.turns) > 0:
		r.sent = behind
		return last, nil
	default:
		return nil, nil //nolint:nilnil // nothing to publish
	}
	if len(behind.turns) == 0 {
		if first.Fork, err = r.fork(ctx, st); err != nil {
			return nil, err
		}
	}
	if first.Generation, err = r.madeUnder(ctx, st, t); err != nil {
		return nil, err
	}
	r.bindUsage(ctx, st, t, &first)
	overhead := len(first.System) + len(first.Tools) + len(first.Policy) + len(first.Usage) + turnMargin
	turns, err := r.split(t, min(events.MaxTurnBytes, r.config.MaxBytes())-overhead)
	if err != nil {
		return nil, err
	}
	base := last.expect()
	for i, messages := range turns {
		turn := syncTurn{V: events.VersionExpect, Turn: events.Turn{Generation: first.Generation}}
		if i == 0 {
			turn = first
		}
		expect, whole := base, base.Digest
		turn.Number, turn.Messages, turn.Expect = base.Turn+1, messages, &expect
		if i == 0 && t.from > 0 {
			turn.Number, turn.ReplacesFrom, whole = t.from, t.from, st.wholeAt(int(t.from)-1)
		}
		if last, err = r.publishTurn(ctx, &turn, last, whole); err != nil {
			return nil, err
		}
		base = last.expect()
		behind.turns = append(slices.Clip(behind.turns), *last)
	}
	r.sent = undecided{st.base(), behind.turns, settings, t.from > 0}
	return last, nil
}

// bindUsage puts the usage of the request into the first turn, with the generation of the call's view. It omits a
// usage that belongs to no call of the session.
func (r *request) bindUsage(ctx context.Context, st *state, t unpublished, first *syncTurn) {
	u := r.in.Usage
	if u == nil {
		return
	}
	if generation, ok := st.viewOf(u.View); ok && t.from == 0 && r.counts(ctx, st, generation, u.Count) {
		first.Generation, first.Usage = generation, u.Raw
	} else if _, fitted := readFitted(u.View); !fitted {
		r.warn(events.CodeUsageUnbound, "")
	}
}

// publishTurn publishes a turn after the last one. whole is the digest of the session before it.
func (r *request) publishTurn(ctx context.Context, turn *syncTurn, last *syncedTurn, whole events.Digest) (*syncedTurn, error) {
	digest := r.format.DigestOf(turn.Messages)
	if err := limit.Of(ctx).Yield(ctx); err != nil {
		return nil, err
	}
	turn.ID = r.eventID(turn, last, digest)
	body, err := codec.Marshal(turn)
	if err != nil {
		return nil, err
	}
	seq, _, err := r.sessions.Deliver(ctx, events.KindTurn, r.address, turn.ID, body, true)
	if err != nil {
		return nil, err
	}
	n := len(turn.Messages)
	return &syncedTurn{seq, turn.Number, whole.With(digest, n), digest, n}, nil
}

// split divides the messages to publish into turns of at most most bytes.
func (r *request) split(t unpublished, most int) ([][]codec.Raw, error) {
	if t.stable <= t.at || t.stable >= r.until {
		return r.history.Until(r.until).Split(t.at, most)
	}
	stays, err := r.history.Until(t.stable).Split(t.at, most)
	if err != nil {
		return nil, err
	}
	rest, err := r.history.Until(r.until).Split(t.stable, most)
	return append(stays, rest...), err
}

// eventID derives the id from the session, the base and the turn: a turn that this worker or another one
// publishes again is the same event.
func (r *request) eventID(t *syncTurn, base *syncedTurn, digest events.Digest) string {
	name := fmt.Sprintf("sync %s %d %s %d %d %s %s", r.address, t.Expect.Turn, t.Expect.Digest, base.seq, t.ReplacesFrom, digest, settingsOf(&t.Turn))
	return uuid.NewSHA1(render.IDNamespace, []byte(name)).String()
}

// settings puts the settings of the request that differ from the session's into a turn. It reports
// whether such a change needs a turn even without messages.
func (r *request) settings(st *state, t *events.Turn) (bool, error) {
	now := &st.settings
	if m := r.in.Model; m != nil && (*m != now.Model || len(st.chain) == 0) {
		t.Model = m
	}
	if st.format == "" {
		t.Format = r.format
	}
	system, err := r.system()
	if err != nil {
		return false, err
	}
	if system != nil && events.SettingKey(system) != now.System {
		t.System = system
	}
	if tools := r.in.Tools; tools != nil && events.SettingKey(tools) != now.Tools {
		t.Tools = tools
	}
	if p := r.in.Policy; p != nil && string(p) != string(now.Policy) {
		t.Policy = p
	}
	return t.Model != nil && len(st.chain) > 0 || t.System != nil || t.Tools != nil || t.Policy != nil, nil
}

// system returns the system prompt of the request, with the instructions at the beginning of the
// history.
func (r *request) system() (codec.Raw, error) {
	if r.history.Lead == 0 || r.history.Before > 0 {
		return r.in.System, nil
	}
	var blocks []any
	var texts []string
	switch s := r.in.System; {
	case s == nil:
	case s.Kind() == '[':
		if err := codec.Unmarshal(s, &blocks); err != nil {
			return nil, events.NewInvalid(events.CodeBadType, "system", "is not a list of blocks")
		}
	default:
		words, _ := codec.Text(s)
		texts = append(texts, words)
	}
	for _, raw := range r.history.Messages[:r.history.Lead] {
		m, err := r.format.Read(raw)
		if err != nil {
			return nil, err
		}
		for i := range m.Parts {
			texts = append(texts, m.Parts[i].Text)
		}
	}
	if len(texts) == 1 && blocks == nil {
		return codec.Marshal(texts[0])
	}
	for _, s := range texts {
		blocks = append(blocks, map[string]string{"type": "text", "text": s})
	}
	return codec.Marshal(blocks)
}

// fork returns the point where a branch without turns begins; nil for any other session.
func (r *request) fork(ctx context.Context, st *state) (*events.Fork, error) {
	if len(st.chain) > 0 || r.in.Branch == "" {
		return nil, nil //nolint:nilnil // not a branch, or an existing one
	}
	if r.in.Fork != nil {
		return r.in.Fork, nil
	}
	fork := &events.Fork{Session: r.in.Session}
	parent := *r.in
	none := int64(0)
	parent.Branch, parent.DryRun, parent.WaitMS, parent.Refused, parent.Usage, parent.OnDivergence = "", true, &none, nil, nil, events.DivergeReplace
	out, err := r.other(ctx, &parent)
	switch code := events.CodeOf(err); {
	case err == nil:
		fork.Turn = out.Turns
	case code == events.CodeFormatChanged: // the parent has none of the history
	default:
		return nil, err
	}
	return fork, nil
}
