package jobs

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// texts holds the texts of a job that are read together with those of an earlier job.
type texts struct {
	done   chan struct{} // closed when the read has ended
	stored []stream.LogMessage
}

// take waits for the texts and returns them. It returns nil after an error.
func (t *texts) take() []stream.LogMessage {
	if t == nil {
		return nil
	}
	<-t.done
	return t.stored
}

// aheadMsg is a delivery of a job with its texts.
type aheadMsg struct {
	jetstream.Msg
	read *texts
}

// seqsOf returns the sequences that a job reads.
func seqsOf(job *events.Job) []uint64 {
	if job.Previous != 0 {
		return slices.Concat([]uint64{job.Previous}, job.Seqs)
	}
	return job.Seqs
}

// textBytes estimates the bytes of a token in the log, including names of fields and ids.
const textBytes = 4

// readAhead reads the texts of a job together with those of its tenant's waiting jobs, in one
// sweep over the log: see [stream.Texts]. It returns the job with its texts. A lane reads ahead
// again only after those jobs have been taken.
func (p *Pool) readAhead(ctx context.Context, s *shares, tenant string, m jetstream.Msg) jetstream.Msg {
	if _, ok := m.(*aheadMsg); ok {
		return m
	}
	behind := s.plan(tenant, p.AheadBytes)
	if len(behind) == 0 {
		return m
	}
	own := &texts{done: make(chan struct{})}
	all, groups := []*texts{own}, make([][]uint64, 1, len(behind)+1)
	if job, err := jobOf(m); err == nil {
		groups[0] = seqsOf(&job)
	}
	for _, h := range behind {
		all, groups = append(all, h.read), append(groups, h.seqs)
	}
	stop := p.keepAlive(ctx, m)
	defer stop()
	stored, err := p.Texts.GetGroups(ctx, groups, p.AheadBytes)
	for i := range all {
		if err == nil && len(groups[i]) > 0 {
			all[i].stored = stored[i]
		}
		close(all[i].done)
	}
	return &aheadMsg{m, own}
}

// jobOf decodes the job of a delivery.
func jobOf(m jetstream.Msg) (job events.Job, err error) {
	err = codec.Unmarshal(m.Data(), &job)
	return job, err
}

// toRead is a waiting job to read ahead.
type toRead struct {
	read *texts
	seqs []uint64
}

// plan returns the waiting jobs of a tenant to read ahead, with at most the estimated bytes. It
// returns nil while other jobs are read ahead.
func (s *shares) plan(tenant string, bytes int) (behind []toRead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ahead > 0 {
		return nil
	}
	for _, h := range s.waiting[tenant] {
		job, err := jobOf(h.m)
		if bytes -= int(min(max(job.EstimatedInput, 0), 1<<30)) * textBytes; err != nil || bytes < 0 {
			break
		}
		h.read = &texts{done: make(chan struct{})}
		behind = append(behind, toRead{h.read, seqsOf(&job)})
	}
	s.ahead = len(behind)
	return behind
}
