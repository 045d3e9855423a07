package limit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// ErrBusy: too many operations wait. The client may retry.
var ErrBusy = errors.New("the worker could not answer in time")

// Class is a resource that operations share.
type Class int

// The classes. Memory and Histories are in bytes, Processor and Quick in goroutines; the others are in operations.
const (
	Memory    Class = iota // bodies, their decoded forms, and answers
	Processor              // goroutines that compute for long
	Quick                  // goroutines that compute briefly
	Reads                  // answers that read the log
	Waits                  // operations that wait for an event
	Forwards               // requests that another worker answers
	Fetches                // requests of other workers larger than a message
	Models                 // files to be summarized by a model
	Streams                // connections that receive events
	CatchUps               // reads of outcomes for such connections
	Histories              // histories rendered for commits
	Undecided              // undecided events larger than [Large]
	classes
)

var names = [classes]string{"memory", "processor", "quick", "reads", "waits", "forwards", "fetches", "models", "streams", "catch_ups", "histories", "undecided"}

// Large is the limit of a small operation, in bytes. A small operation computes briefly, and its memory is counted
// as it grows.
const Large = 64 << 10

// objectBytes is the cost of an object in JSON, in bytes of text.
const objectBytes = 64

// Weight returns the cost of a JSON text in bytes, by its size and its objects: 60 KB may have 2,000 messages.
func Weight(data []byte) int { return len(data) + objectBytes*bytes.Count(data, []byte{'{'}) }

// Config limits the shared resources.
type Config struct {
	// Memory of operations, in bytes. Default 128 MiB; at least 16 MiB. Histories that are rendered for
	// commits have another quarter of that; a single history may be larger.
	Memory int64
	// Streams limits the connections that receive events. Default 20,000; only tests set it.
	Streams int
	// Registerer gets the metrics. Default none.
	Registerer prometheus.Registerer
	// OnChange receives the held amount of a class after each change. It must neither block nor
	// call the limiter. Only tests set it.
	OnChange func(c Class, held int64)
}

// Limiter shares the classes among tenants.
type Limiter struct {
	pools   [classes]*pool
	answers rates
	moments moments
	metrics metrics
}

const (
	defaultMemory = 128 << 20
	leastMemory   = 16 << 20
	maxReads      = 16
	maxWaits      = 4096
	maxForwards   = 256
	maxFetches    = 8
	maxModels     = 4
	maxCatchUps   = 32
)

// New returns a limiter with all resources free.
func New(c Config) *Limiter {
	l := &Limiter{metrics: newMetrics(c.Registerer), answers: rates{each: answerRate, burst: answerBurst}, moments: newMoments()}
	memory, processors := max(cmp.Or(c.Memory, defaultMemory), leastMemory), int64(max(runtime.GOMAXPROCS(0)-1, 1))
	sizes := [classes]int64{
		Memory: memory, Histories: memory / 4, Processor: processors, Undecided: processors, Quick: 2 * int64(runtime.GOMAXPROCS(0)),
		Reads: maxReads, Waits: maxWaits, Forwards: maxForwards, Fetches: maxFetches, Models: maxModels,
		Streams: int64(cmp.Or(c.Streams, 20_000)), CatchUps: maxCatchUps,
	}
	for class, size := range sizes {
		small := int64(0)
		if Class(class) == Memory {
			small = Large * PerByte
		}
		floor := !slices.Contains([]Class{Processor, Quick, Histories}, Class(class))
		p := newPool(size, small, floor, Class(class) != Memory)
		waited := l.metrics.waited.WithLabelValues(names[class])
		refused := l.metrics.refused.WithLabelValues(names[class])
		p.onWait = func(d time.Duration, err error) {
			if waited.Observe(d.Seconds()); err != nil {
				refused.Inc()
			}
		}
		p.onRefuse = refused.Inc
		if c.OnChange != nil {
			p.onChange = func(held int64) { c.OnChange(Class(class), held) }
		}
		l.pools[class] = p
	}
	return l
}

// metrics holds the series of a limiter; docs/operations.md defines each.
type metrics struct {
	waited  *prometheus.HistogramVec
	refused *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	if reg != nil {
		reg = prometheus.WrapRegistererWithPrefix("compactd_limit_", reg)
	}
	f := promauto.With(reg)
	return metrics{
		waited: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "wait_seconds", Help: "How long operations waited that did not get their share at once.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"class"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "refused_total", Help: "Operations that got no share in time."}, []string{"class"}),
	}
}

// Held returns the amount of a class in use.
func (l *Limiter) Held(c Class) int64 {
	p := l.pools[c]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}

// Begin begins an operation. The caller ends it with End.
func (l *Limiter) Begin(of Account) *Operation { return &Operation{limiter: l, of: of} }

// TryHold takes n of a class until release, without waiting; false if there is not enough.
func (l *Limiter) TryHold(c Class, of Account, n int64) (release func(), ok bool) {
	got, ok := l.pools[c].try(of, n)
	if !ok {
		l.pools[c].onRefuse()
		return nil, false
	}
	return got.release, true
}

// Hold takes n of a class until release, and waits in turn until ctx ends. After an error release does nothing.
func (l *Limiter) Hold(ctx context.Context, c Class, of Account, n int64) (release func(), err error) {
	got, err := l.pools[c].take(ctx, of, n)
	return got.release, err
}
