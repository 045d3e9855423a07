package syncs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// refusedHere reports whether the refusal belongs to the session: the provider refused its newest
// view, another view of it, or a fitted one.
func (r *request) refusedHere(st *state) bool {
	_, fitted := readFitted(r.pending.View)
	return fitted || r.pending.View == "" || st.gave(r.pending.View)
}

// refuseHere publishes the refusal of a request if it belongs to the session. It then returns
// errStale, since the session must be read again.
func (r *request) refuseHere(ctx context.Context, st *state) error {
	switch {
	case r.pending == nil || len(st.chain) == 0:
		return nil
	case r.refusedHere(st):
		return cmp.Or(r.refuse(ctx, st), error(errStale))
	}
	r.warn(events.CodeRefusedUnbound, "")
	return nil
}

// refuse publishes the refusal of a call, and waits for a shorter history.
func (r *request) refuse(ctx context.Context, st *state) error {
	o, err := r.refusal(st)
	if err != nil {
		return err
	}
	body, err := codec.Marshal(o)
	if err != nil {
		return err
	}
	seq, _, err := r.sessions.Deliver(ctx, events.KindOverflow, r.address, o.ID, body, true)
	if err != nil {
		return err
	}
	return r.awaitShorter(ctx, seq)
}

// refusal is the event of a refusal.
type refusal struct {
	V          int           `json:"v"`
	ID         string        `json:"id"`
	Error      codec.Raw     `json:"error,omitzero"`
	Status     int64         `json:"status,omitzero"`
	Model      *events.Model `json:"model,omitzero"`
	Generation int64         `json:"generation"`
	Unbind     bool          `json:"unbind"` // removes thinking that is bound to another history
	Unrecorded int64         `json:"unrecorded,omitzero"`
}

// refusal makes the event of a refusal. Its id follows from session and content.
func (r *request) refusal(st *state) (*refusal, error) {
	in := r.pending
	r.pending = nil
	o := &refusal{V: events.Version, Unbind: true, Error: in.Error, Status: in.Status, Model: r.in.Model, Generation: st.generation}
	if v, ok := readFitted(in.View); ok {
		o.Unrecorded = int64(v.estimate)
	} else if gen, _, _ := strings.Cut(in.View, ":"); in.View != "" {
		n, err := strconv.ParseInt(gen, 10, 64)
		if err != nil || n < 0 || n > st.generation {
			return nil, events.NewInvalid(events.CodeUnknownGeneration, "refused.view", "is none of this session")
		}
		o.Generation = n
	}
	if r.shorter > 0 && o.Unrecorded == 0 {
		o.Unrecorded = r.shorter
	}
	r.refused = cmp.Or(in.View, viewName(st.generation, st.base().Digest))
	generation := o.Generation
	if o.Unrecorded > 0 { // the view's name identifies a fitted view
		generation = 0
	}
	name := fmt.Sprintf("refused %s %s %d %d %s", r.address, in.View, generation, in.Status, in.Error)
	if in.View == "" {
		name += viewDigest(st.base().Digest)
	}
	o.ID = uuid.NewSHA1(render.IDNamespace, []byte(name)).String()
	return o, nil
}

// awaitShorter waits for the compaction that answers a refusal.
func (r *request) awaitShorter(ctx context.Context, seq uint64) error {
	wait := max(refusedWait, time.Until(r.deadline))
	r.deadline = time.Now().Add(wait)
	out, err := r.resultOf(ctx, seq, wait)
	switch {
	case events.CodeOf(err) == events.CodeTurnPending:
		r.warn(events.CodeLate, "")
		return nil
	case err != nil:
		return err
	case out.Code == events.CodeUnknownSession: // the session has ended
		return nil
	case !out.Accepted:
		return events.Refuse(out.Code, out.Message, out.Hint)
	}
	r.tried = out.Compaction
	return nil
}

// resultOf returns the result of an event of the session.
func (r *request) resultOf(ctx context.Context, seq uint64, wait time.Duration) (*events.OutcomeResponse, error) {
	within := events.Await{}.Within(wait)
	return r.sessions.ResultOf(ctx, &events.OutcomeRequest{About: r.address.About(), Seq: seq, WaitMS: within.WaitMS})
}
