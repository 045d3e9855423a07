package compress

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"compactd/internal/align"
	"compactd/internal/broker/coord"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

const (
	// refreshAfter is when the digest of a session that is in use is written again.
	refreshAfter = 24 * time.Hour
	// maxBehind is how many boundaries behind its digest a session may be: fewer than are
	// looked up, so that one that was found is found again.
	maxBehind = 128
)

// history is one that a gateway sent, with the digests of its beginnings.
type history struct {
	format   events.Format
	messages []events.Raw
	// boundaries are where an earlier request may have ended, and digests those of the
	// messages before them, without the instructions. The last one is the whole. There are
	// none without an answer of a model: then it shows no conversation.
	boundaries []int
	digests    []events.Digest
}

// read returns a history in a scope. Its error is an [events.Invalid] about a message.
func read(f events.Format, scope string, messages []events.Raw) (*history, error) {
	h := &history{format: f, messages: messages}
	sum := sha256.Sum256([]byte("compactd prefix " + string(f) + " " + scope))
	d := events.Digest(sum[:len(events.Digest{})])
	answered, answering := false, false // a model has answered; it does in the message before
	for i := align.Read(f, messages, 0).Lead; i < len(messages); i++ {
		m, err := f.Read(messages[i])
		if err != nil {
			return nil, err
		}
		answer := m.Role == events.RoleAssistant
		if answer && answered && !answering {
			h.add(i, d)
		}
		answered, answering = answered || answer, answer
		d = d.With(f.DigestOf(messages[i:i+1]), 1)
	}
	if answered {
		h.add(len(messages), d)
	}
	return h, nil
}

func (h *history) add(boundary int, d events.Digest) {
	h.boundaries, h.digests = append(h.boundaries, boundary), append(h.digests, d)
}

// whole is the digest of all messages; only where there are boundaries.
func (h *history) whole() events.Digest { return h.digests[len(h.digests)-1] }

// found is a session that a beginning of a history is known of.
type found struct {
	coord.Prefix
	digest events.Digest
	behind int // boundaries of the history that are later
}

// find returns the session that has the longest beginning of a history; its name is "" where
// none has one.
func (s *Compressor) find(ctx context.Context, tenant string, h *history) (found, error) {
	all, err := idle(ctx, func() (map[events.Digest]coord.Prefix, error) { return s.prefixes.Find(ctx, tenant, h.digests) })
	if err != nil {
		return found{}, err
	}
	for i, digest := range slices.Backward(h.digests) {
		if p, ok := all[digest]; ok {
			return found{p, digest, len(h.digests) - 1 - i}, nil
		}
	}
	return found{}, nil
}

// remember notes how the history of a session begins, where that is not known, or will not be
// for long. It fails silently: the next request begins another session then.
func (s *Compressor) remember(ctx context.Context, tenant, session string, h *history, at found) {
	if len(h.digests) == 0 {
		return
	}
	digest := h.whole()
	if known := at.Session == session; known && at.behind < maxBehind {
		if time.Since(at.Written) < refreshAfter {
			return
		}
		digest = at.digest
	}
	if err := limit.Of(ctx).Idle(ctx, func() error { return s.prefixes.Save(ctx, tenant, digest, session) }); err != nil {
		s.onError(err)
	}
}

// own is the name of a session that begins with a history: a caller that sends the same history
// again, through any worker, means the same session.
func (h *history) own() string {
	return "px-" + h.whole().String() + h.format.DigestOf(h.messages[align.Read(h.format, h.messages, 0).Lead:]).String()[:16]
}
