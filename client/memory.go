package client

import (
	"slices"
	"sync"
)

// record is the last answer of a conversation.
type record struct {
	session, branch string
	count           int // messages that it is about
	sum, setup      sum
	synced          *Synced // without its messages
	bytes           int     // that were sent
	usage           any     // of its call, until it is sent; guarded by memory.mu
}

func (r *record) generation() int64 {
	if r == nil {
		return 0
	}
	return r.synced.Generation
}

// room is the number of bytes of a call that fit into the window, 0 if unknown. A tenth is left free, because
// it is an estimate.
func (r *record) room() int {
	b := r.synced.Budget
	if b.EstimatedInput == 0 {
		return 0
	}
	return int(int64(r.bytes) * b.AvailableInput / b.EstimatedInput * 9 / 10)
}

// memory has the records, the newest at the end.
type memory struct {
	most    int
	mu      sync.Mutex // guards records
	records []*record
}

// find returns the record of the longest history that begins the call's, and the usage that was not sent; nil
// for none.
func (m *memory) find(c *modelCall) (last *record, usage any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		known := r.session == c.session && r.branch == c.branch && r.count < len(c.sums) && r.sum == c.sums[r.count]
		if known && (last == nil || r.count >= last.count) {
			last = r
		}
	}
	if last != nil && !c.dry {
		usage, last.usage = last.usage, nil
	}
	return last, usage
}

// recordOf is the record of an answer to a call of sent bytes.
func recordOf(c *modelCall, s *Synced, bytes int) *record {
	kept := *s
	kept.Messages = nil // they are the caller's
	n := len(c.messages)
	return &record{session: c.session, branch: c.branch, count: n, sum: c.sums[n], setup: c.setup, synced: &kept, bytes: bytes}
}

// put remembers a record in place of the one before it.
func (m *memory) put(r, last *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.DeleteFunc(m.records, func(o *record) bool { return o == last })
	m.records = append(m.records[max(0, len(m.records)-m.most+1):], r)
}

// count remembers the usage of a call.
func (m *memory) count(r *record, usage any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.usage = usage
}

// mostProblems bounds the remembered problems.
const mostProblems = 256

// problem is a problem of a session, or of all, under the name "".
type problem struct {
	session string
	code    Code
}

// problems are the reported problems that persist.
type problems struct {
	mu   sync.Mutex // guards seen
	seen []problem  // the newest at the end
}

// begin reports whether a problem is new.
func (p *problems) begin(session string, code Code) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := problem{session, code}
	if slices.Contains(p.seen, at) {
		return false
	}
	p.seen = append(p.seen[max(0, len(p.seen)-mostProblems+1):], at)
	return true
}

// answered ends the problems of a session, except the warnings of its answer, and those of all sessions.
func (p *problems) answered(session string, warnings []Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = slices.DeleteFunc(p.seen, func(at problem) bool {
		remains := slices.ContainsFunc(warnings, func(w Note) bool { return w.Code == at.code })
		return at.session == "" || at.session == session && !remains
	})
}
