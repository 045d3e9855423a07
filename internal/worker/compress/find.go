package compress

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"compactd/internal/align"
	"compactd/internal/broker/coord"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
)

const (
	// refreshAfter is the age at which the digest of a session in use is written again.
	refreshAfter = 24 * time.Hour
	// maxBehind limits the boundaries after the digest by which a session is found. It is below
	// the number of looked-up digests, so that the session is found again.
	maxBehind = 128
)

// history is the history of a request, with the digests of its prefixes.
type history struct {
	format   events.Format
	messages []codec.Raw
	// boundaries are the indices at which an earlier request may have ended. digests are those of the
	// messages before them, without the instructions. The last one covers the whole history. Both
	// are empty without an answer of a model: then it is not yet a conversation.
	boundaries []int
	digests    []events.Digest
}

// read returns a history in a scope. Its error is an [events.Invalid] about a message.
func read(f events.Format, scope string, messages []codec.Raw) (*history, error) {
	h := &history{format: f, messages: messages}
	sum := sha256.Sum256([]byte("compactd prefix " + string(f) + " " + scope))
	d := events.Digest(sum[:len(events.Digest{})])
	answered, answering := false, false // a model has answered; the previous message is an answer
	for i := align.Read(f, messages, 0).Lead; i < len(messages); i++ {
		m, err := f.Read(messages[i])
		if err != nil {
			return nil, err
		}
		answer := m.Role == dialect.RoleAssistant
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

// whole returns the digest of all messages. It requires boundaries.
func (h *history) whole() events.Digest { return h.digests[len(h.digests)-1] }

// found is a session that is known by a prefix of a history.
type found struct {
	coord.Prefix
	digest events.Digest
	behind int // number of later boundaries of the history
}

// find returns the session that has the longest prefix of a history. Its name is "" if no session has
// one.
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

// remember stores the digest of a session's history if none is stored, or if it expires soon. It
// reports a failure only to onError: the next request then begins another session.
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

// own returns the name of a session that begins with this history. The same history leads to the same
// session, through any worker.
func (h *history) own() string {
	return "px-" + h.whole().String() + h.format.DigestOf(h.messages[align.Read(h.format, h.messages, 0).Lead:]).String()[:16]
}
