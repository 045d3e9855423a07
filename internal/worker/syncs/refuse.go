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
)

// refusedHere reports whether the refusal that is to be published is one of the session: of a view
// of it, of one that no session has, or of the newest.
func (x *request) refusedHere(st *state) bool {
	_, fitted := readFitted(x.pending.View)
	return fitted || x.pending.View == "" || st.gave(x.pending.View)
}

// refuseHere publishes the refusal of a request, if there is one to publish and the session is its
// own; the session is then to be read again, as the error states.
func (x *request) refuseHere(ctx context.Context, st *state) error {
	switch {
	case x.pending == nil || len(st.chain) == 0:
		return nil
	case x.refusedHere(st):
		return cmp.Or(x.refuse(ctx, st), error(errStale))
	}
	x.warn(events.CodeRefusedUnbound, "")
	return nil
}

// refuse publishes that a provider refused a call, and waits for the history that fits.
func (x *request) refuse(ctx context.Context, st *state) error {
	r := x.pending
	x.pending = nil
	o := struct {
		V          int           `json:"v"`
		ID         string        `json:"id"`
		Error      events.Raw    `json:"error,omitzero"`
		Status     int64         `json:"status,omitzero"`
		Model      *events.Model `json:"model,omitzero"`
		Generation int64         `json:"generation"`
		Unbind     bool          `json:"unbind"` // thinking that is bound to another history
		Unrecorded int64         `json:"unrecorded,omitzero"`
	}{V: events.Version, Unbind: true, Error: r.Error, Status: r.Status, Model: x.in.Model, Generation: st.generation}
	if v, ok := readFitted(r.View); ok {
		o.Unrecorded = int64(v.estimate)
	} else if gen, _, _ := strings.Cut(r.View, ":"); r.View != "" {
		n, err := strconv.ParseInt(gen, 10, 64)
		if err != nil || n < 0 || n > st.generation {
			return events.NewInvalid(events.CodeUnknownGeneration, "refused.view", "is none of this session")
		}
		o.Generation = n
	}
	if x.shorter > 0 && o.Unrecorded == 0 {
		o.Unrecorded = x.shorter
	}
	x.refused = cmp.Or(r.View, viewName(st.generation, st.base().Digest))
	generation := o.Generation
	if o.Unrecorded > 0 { // its name is all of it
		generation = 0
	}
	name := fmt.Sprintf("refused %s %s %d %d %s", x.address, r.View, generation, r.Status, r.Error)
	if r.View == "" {
		name += viewDigest(st.base().Digest)
	}
	o.ID = uuid.NewSHA1(render.IDNamespace, []byte(name)).String()
	body, err := events.Marshal(&o)
	if err != nil {
		return err
	}
	seq, err := x.host.Publish(ctx, events.KindOverflow, x.address, o.ID, body)
	if err != nil {
		return err
	}
	until := time.Now().Add(max(refusedWait, time.Until(x.deadline)))
	x.deadline = until
	for {
		err := x.host.AwaitDecided(ctx, x.address, events.Await{Seq: seq}.Within(time.Until(until)))
		var out *events.OutcomeResponse
		if err == nil {
			out, err = x.host.Outcome(ctx, &events.OutcomeRequest{Tenant: x.address.Tenant, Session: x.address.Session, Seq: seq})
		}
		switch {
		case codeOf(err) == events.CodeTurnPending:
			x.warn(events.CodeLate, "")
			return nil
		case err != nil:
			return err
		case out.Code == events.CodeUnknownSession: // it has ended since
			return nil
		case !out.Accepted:
			return &events.ServiceError{V: events.Version, Code: out.Code, Message: out.Message, Hint: out.Hint}
		case out.Compaction != nil:
			x.tried = out.Compaction
			return nil
		}
		if err := x.host.Pause(ctx, resultPause); err != nil { // it waits for a summary
			return err
		}
		if time.Now().After(until) {
			return nil
		}
	}
}
