package topology

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// Mismatch is one setting of an existing stream that compactd cannot work with.
type Mismatch struct{ Stream, Field, Have, Want string }

// MismatchError lists the settings of existing streams that compactd can neither work with nor
// change safely.
type MismatchError struct{ Mismatches []Mismatch }

func (e *MismatchError) Error() string {
	lines := make([]string, len(e.Mismatches))
	for i, m := range e.Mismatches {
		lines[i] = fmt.Sprintf("%s: %s is %s, not %s", m.Stream, m.Field, m.Have, m.Want)
	}
	return "streams do not fit: " + strings.Join(lines, "; ") +
		"; correct them with the nats tool, or use another account or --data"
}

func checkLog(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.common(c)
	m.equal("direct get", c.AllowDirect, true)
	_, bad := tableOf(c)
	m.list = append(m.list, bad...)
	for _, k := range events.OutcomeKinds {
		published := events.Published(k, events.Address{Tenant: "*", Session: "*"})
		for _, s := range c.Subjects {
			if collide(s, published) {
				m.add("subject", s, "one that catches "+published)
			}
		}
	}
	return m.list
}

func checkOutcomes(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.common(c)
	m.equal("direct get", c.AllowDirect, false)
	m.equal("atomic publish", c.AllowAtomicPublish, true)
	if c.SubjectTransform != nil {
		m.add("subject transform", show(c.SubjectTransform), "none")
	}
	if r := c.RePublish; r == nil || r.Source != events.OutcomesFilter || r.Destination != events.OutcomesRepublish || r.HeadersOnly {
		m.add("republish", showRepublish(r), "from "+events.OutcomesFilter+" to "+events.OutcomesRepublish)
	}
	return m.list
}

// mismatches collects the wrong settings of one stream.
type mismatches struct {
	stream string
	list   []Mismatch
}

func (m *mismatches) add(field, have, want string) {
	m.list = append(m.list, Mismatch{m.stream, field, have, want})
}

func (m *mismatches) equal(field string, have, want any) {
	if have != want {
		m.add(field, fmt.Sprint(have), fmt.Sprint(want))
	}
}

// common checks for settings that would lose messages, let clients erase them, leave publishers
// without an answer, or prevent the erasure of sessions.
func (m *mismatches) common(c jetstream.StreamConfig) {
	m.equal("retention", c.Retention, jetstream.LimitsPolicy)
	m.equal("storage", c.Storage, jetstream.FileStorage)
	m.equal("discard", c.Discard, jetstream.DiscardNew)
	m.equal("max messages", max(c.MaxMsgs, 0), int64(0))
	m.equal("max messages per subject", max(c.MaxMsgsPerSubject, 0), int64(0))
	m.equal("no ack", c.NoAck, false)
	m.equal("sealed", c.Sealed, false)
	m.equal("rollup", c.AllowRollup, false)
	m.equal("deny delete", c.DenyDelete, false)
	m.equal("deny purge", c.DenyPurge, false)
	m.equal("mirror", c.Mirror != nil, false)
	m.equal("sources", len(c.Sources), 0)
}

func show(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return "from " + t.Source + " to " + t.Destination
}

func showRepublish(r *jetstream.RePublish) string {
	if r == nil {
		return "none"
	}
	s := "from " + r.Source + " to " + r.Destination
	if r.HeadersOnly {
		s += ", headers only"
	}
	return s
}
