package observe

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/summarize/model"
)

// maxNotes limits the notes of a board.
const maxNotes = 64

// Partition is the last state of a partition that this worker serves or served.
type Partition struct {
	events.FleetPartition
	Failed bool  // it ended with an error, and no worker has taken it over
	Full   error // the error of a write without space in the store or on the disk

	commits []commitTime // the newest last
}

// commitTime is the end and the duration of a commit.
type commitTime struct {
	at   time.Time
	took time.Duration
}

// maxCommits limits the remembered commits of a partition.
const maxCommits = 512

// Board keeps the state of a worker, for the console and for checks. Any goroutine may use it.
type Board struct {
	mu         sync.Mutex // guards the fields below
	partitions map[int]*Partition
	models     map[string]string // state of the circuit, by model
	notes      []events.FleetNote
}

// NewBoard returns an empty board.
func NewBoard() *Board {
	return &Board{partitions: map[int]*Partition{}, models: map[string]string{}}
}

// Partition returns the state of a partition.
func (b *Board) Partition(id int) events.FleetPartition {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.partitions[id]
	if p == nil {
		return events.FleetPartition{Partition: int64(id)}
	}
	out := p.FleetPartition
	out.Commits = commitsOf(p.commits)
	return out
}

// Partitions returns the partitions that this worker serves or served, by number.
func (b *Board) Partitions() map[int]Partition {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[int]Partition, len(b.partitions))
	for id, p := range b.partitions {
		out[id] = *p
	}
	return out
}

// Commits returns statistics of the commits of the last minute in all partitions.
func (b *Board) Commits() *events.FleetCommits {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []commitTime
	for _, p := range b.partitions {
		all = append(all, p.commits...)
	}
	return commitsOf(all)
}

// commitsOf returns statistics of the commits of the last minute, or nil.
func commitsOf(all []commitTime) *events.FleetCommits {
	var took []int64
	for _, c := range all {
		if time.Since(c.at) < time.Minute {
			took = append(took, c.took.Microseconds())
		}
	}
	if len(took) == 0 {
		return nil
	}
	slices.Sort(took)
	return &events.FleetCommits{Count: int64(len(took)), P50: took[(len(took)-1)/2], P99: took[(len(took)-1)*99/100], Longest: took[len(took)-1]}
}

// Notes returns the latest notes, the newest last.
func (b *Board) Notes() []events.FleetNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]events.FleetNote{}, b.notes...)
}

// Models returns the states of the models' circuits, in no order.
func (b *Board) Models() (out []events.FleetModel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, circuit := range b.models {
		out = append(out, events.FleetModel{Model: name, Circuit: circuit})
	}
	return out
}

// Listener returns a listener that updates the board.
func (b *Board) Listener() Listener {
	return Listener{
		PartitionAcquired: func(e PartitionAcquired) {
			b.set(e.Partition, func(p *Partition) {
				*p = Partition{FleetPartition: events.FleetPartition{
					Partition: int64(e.Partition), Served: true, Epoch: e.Epoch, Cursor: uint64(e.Cursor), Sessions: int64(e.Sessions), Acquired: time.Now().UnixMilli(),
				}}
			})
			b.note(e.Partition, "acquired", fmt.Sprintf("epoch %d, %d events replayed in %s", e.Epoch, e.Replayed, e.Took.Round(time.Millisecond)))
		},
		PartitionReleased: func(e PartitionReleased) {
			b.left(e.Partition, e.Err != nil && !errors.Is(e.Err, commit.ErrFenced)) // fenced: another worker serves it
			b.note(e.Partition, "released", e.Reason)
		},
		PartitionFailed: func(e PartitionFailed) {
			b.left(e.Partition, true)
			b.note(e.Partition, "failed", "see the log of the worker") // its error may name a session
		},
		Applied: func(e Applied) {
			b.set(e.Partition, func(p *Partition) { p.Behind = e.Pending })
		},
		Committed: func(e Committed) {
			b.set(e.Partition, func(p *Partition) {
				p.Cursor = uint64(e.Cursor)
				p.commits = append(p.commits[max(len(p.commits)-maxCommits+1, 0):], commitTime{time.Now(), e.Took})
				if !errors.Is(p.Full, kv.ErrFull) {
					p.Full = nil
				}
			})
		},
		Checkpointed: func(e Checkpointed) {
			b.set(e.Partition, func(p *Partition) {
				p.Checkpoint, p.Sessions = time.Now().UnixMilli(), int64(e.Kept)
				if errors.Is(p.Full, kv.ErrFull) {
					p.Full = nil
				}
			})
		},
		Quarantined: func(e Quarantined) { b.note(e.Partition, "quarantined", e.Moved) },
		Foreign: func(e Foreign) {
			b.note(e.Partition, "foreign", fmt.Sprintf("%d messages, %d to %d", e.Messages, e.First, e.Last))
		},
		OutcomesLimited: func(e OutcomesLimited) { b.note(-1, "outcomes_limited", e.Tenant+": "+e.Reason) },
		ModelCalled:     func(e ModelCalled) { b.called(e.Model, e.Err) },
		SummaryDone: func(e SummaryDone) {
			if e.Failure != "" {
				b.note(-1, "summary_failed", e.Address.Tenant+": "+e.Failure)
			}
		},
		Retrying: func(e Retrying) {
			_, full := errors.AsType[*commit.StoreFullError](e.Err)
			if e.Partition >= 0 && (full || errors.Is(e.Err, kv.ErrFull)) {
				b.set(e.Partition, func(p *Partition) { p.Full = e.Err })
			}
			b.note(e.Partition, "retrying", e.Step)
		},
	}
}

// left marks a partition as no longer served.
func (b *Board) left(id int, failed bool) {
	b.set(id, func(p *Partition) { p.Served, p.Failed, p.Full, p.commits = false, failed, nil, nil })
}

func (b *Board) set(id int, change func(*Partition)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.partitions[id] == nil {
		b.partitions[id] = &Partition{FleetPartition: events.FleetPartition{Partition: int64(id)}}
	}
	change(b.partitions[id])
}

// note adds a note. It replaces the last one if that is the same.
func (b *Board) note(partition int, kind, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := events.FleetNote{Time: time.Now().UnixMilli(), Kind: kind, Text: text}
	if partition >= 0 {
		n.Partition = new(int64(partition))
	}
	if k := len(b.notes) - 1; k >= 0 && b.notes[k].Kind == kind && b.notes[k].Text == text && (b.notes[k].Partition == nil) == (n.Partition == nil) &&
		(n.Partition == nil || *b.notes[k].Partition == *n.Partition) {
		b.notes = b.notes[:k]
	}
	if b.notes = append(b.notes, n); len(b.notes) > maxNotes {
		b.notes = b.notes[1:]
	}
}

func (b *Board) called(name string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	failure, _ := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		b.models[name] = "closed"
	case failure != nil && failure.Kind == model.CircuitOpen:
		b.models[name] = "open"
	default:
		b.models[name] = "failing"
	}
}
