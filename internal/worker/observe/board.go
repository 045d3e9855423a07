package observe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// maxNotes is how many notes a board keeps.
const maxNotes = 64

// Board keeps what a worker shows of itself to the console. Any goroutine may use it.
type Board struct {
	mu         sync.Mutex // guards the fields below
	partitions map[int]*events.FleetPartition
	models     map[string]string // circuit of each
	notes      []events.FleetNote
}

// NewBoard returns an empty one.
func NewBoard() *Board {
	return &Board{partitions: map[int]*events.FleetPartition{}, models: map[string]string{}}
}

// Partition is what is known of a partition that this worker serves.
func (b *Board) Partition(id int) events.FleetPartition {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.partitions[id]; p != nil {
		return *p
	}
	return events.FleetPartition{Partition: int64(id)}
}

// Notes lists what happened lately, the newest last, and Models the circuits of models, by name.
func (b *Board) Notes() []events.FleetNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]events.FleetNote{}, b.notes...)
}

// Models is described at Notes.
func (b *Board) Models() (out []events.FleetModel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, circuit := range b.models {
		out = append(out, events.FleetModel{Model: name, Circuit: circuit})
	}
	return out
}

// Listener is what the worker must report of itself.
func (b *Board) Listener() Listener {
	return Listener{
		PartitionAcquired: func(e PartitionAcquired) {
			b.set(e.Partition, func(p *events.FleetPartition) {
				*p = events.FleetPartition{
					Partition: int64(e.Partition), Served: true, Epoch: e.Epoch, Cursor: uint64(e.Cursor), Sessions: int64(e.Sessions), Acquired: time.Now().UnixMilli(),
				}
			})
			b.note(e.Partition, "acquired", fmt.Sprintf("epoch %d, %d events replayed in %s", e.Epoch, e.Replayed, e.Took.Round(time.Millisecond)))
		},
		PartitionReleased: func(e PartitionReleased) {
			b.set(e.Partition, func(p *events.FleetPartition) { p.Served = false })
			b.note(e.Partition, "released", e.Reason)
		},
		PartitionFailed: func(e PartitionFailed) { b.note(e.Partition, "failed", "see the log of the worker") }, // its error may name a session
		Applied: func(e Applied) {
			b.set(e.Partition, func(p *events.FleetPartition) { p.Behind = e.Pending })
		},
		Committed: func(e Committed) {
			b.set(e.Partition, func(p *events.FleetPartition) { p.Cursor = uint64(e.Cursor) })
		},
		Checkpointed: func(e Checkpointed) {
			b.set(e.Partition, func(p *events.FleetPartition) { p.Checkpoint, p.Sessions = time.Now().UnixMilli(), int64(e.Kept) })
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
		Retrying: func(e Retrying) { b.note(e.Partition, "retrying", e.Step) },
	}
}

func (b *Board) set(id int, change func(*events.FleetPartition)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.partitions[id] == nil {
		b.partitions[id] = &events.FleetPartition{Partition: int64(id)}
	}
	change(b.partitions[id])
}

// note keeps a note; the same one twice in a row is one.
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
