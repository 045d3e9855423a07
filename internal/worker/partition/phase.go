package partition

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// phase is where a partition is in its life; doc.go draws it.
type phase int32

const (
	opening phase = iota
	serving
	draining
	closed
)

func (p phase) String() string { return [...]string{"opening", "serving", "draining", "closed"}[p] }

// following are the phases that may follow each one.
var following = [...][]phase{opening: {serving, closed}, serving: {draining}, draining: {closed}, closed: nil}

// lifecycle holds the phase. One goroutine changes it, any may read it.
type lifecycle struct{ now atomic.Int32 }

func (l *lifecycle) phase() phase { return phase(l.now.Load()) }

// enter changes the phase. A transition that doc.go does not draw is a bug, and panics.
func (l *lifecycle) enter(to phase) {
	if from := phase(l.now.Swap(int32(to))); !slices.Contains(following[from], to) {
		panic(fmt.Sprintf("partition: %s after %s", to, from))
	}
}
