package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/disk"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

const (
	// checkEvery is the time for which the result of a check is valid: more frequent requests get the
	// same answer and write no canary.
	checkEvery = time.Second
	// checkTimeout limits a check.
	checkTimeout = 2 * time.Second
	// maxMisses is the tolerated number of checks in a row without an answer of the server in time. A
	// busy machine misses one. A server that is gone closes the connection, which is a problem at
	// once.
	maxMisses = 2
)

// Checks of /readyz.
const (
	checkStarted    = "started"    // all partitions were caught up once, and the worker is not stopping
	checkPartitions = "partitions" // no partition ended with an error
	checkBroker     = "broker"     // a canary written through the commit connection was stored
	checkDisk       = "disk"       // the disk of the data directory has space
	checkStreams    = "streams"    // both streams have space
	checkLag        = "lag"        // no partition is far behind
)

var allChecks = []string{checkStarted, checkPartitions, checkBroker, checkDisk, checkStreams, checkLag}

// Readiness is the answer of /readyz.
type Readiness struct {
	// Ready: the worker answers agents as it should. Problems is empty.
	Ready bool `json:"ready"`
	// Problems lists the failed checks.
	Problems []Problem `json:"problems"`
	// Served is the number of partitions that this worker serves.
	Served int `json:"partitions_served"`
	// Checked is the time of the check. The result is valid for a second.
	Checked time.Time `json:"checked"`
}

// Problem is one check that failed.
type Problem struct {
	Check   string `json:"check"` // started, partitions, broker, disk, streams, or lag
	Message string `json:"message"`
}

func (r *Readiness) add(check, format string, v ...any) {
	r.Problems = append(r.Problems, Problem{check, fmt.Sprintf(format, v...)})
}

// Readiness checks the worker, at most once a second.
func (m *Monitor) Readiness(ctx context.Context) Readiness {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.last.Checked) < checkEvery {
		return m.last
	}
	// The check must outlast the first caller: others wait for its result.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	r := Readiness{Problems: []Problem{}}
	places := m.places()
	m.checkPlaces(&r, places)
	m.checkDisk(&r)
	if w := m.watched.Load(); w == nil {
		r.add(checkStarted, "the worker is starting")
	} else {
		t := w.worker.parts.Table()
		m.metrics.partitions.Set(float64(t.Count()))
		m.metrics.unsplit.Set(float64(len(t.Unsplit())))
		m.checkWorker(&r, w)
		m.checkServer(ctx, &r, w, places)
	}
	r.Ready, r.Checked = len(r.Problems) == 0, time.Now()
	m.export(&r)
	m.last = r
	return r
}

// places returns the partitions that the worker serves or served; nil before Watch.
func (m *Monitor) places() map[int]observe.Partition {
	if w := m.watched.Load(); w != nil {
		return w.worker.board.Partitions()
	}
	return nil
}

func (m *Monitor) checkPlaces(r *Readiness, places map[int]observe.Partition) {
	failed := 0
	for _, id := range slices.Sorted(maps.Keys(places)) {
		at := places[id]
		switch {
		case at.Served:
			r.Served++
		case at.Failed: // its error may name a session, so only the log has it
			failed++
			r.add(checkPartitions, "partition %d ended with an error and is opened again, see the log of the worker", id)
		}
		if !at.Served {
			m.metrics.drop(id)
		}
		if at.Full != nil {
			r.add(checkDisk, "partition %d cannot write: %v", id, at.Full)
		}
	}
	m.metrics.served.Set(float64(r.Served))
	m.metrics.failed.Set(float64(failed))
}

func (m *Monitor) checkWorker(r *Readiness, w *watched) {
	select {
	case <-w.ready:
	default:
		r.add(checkStarted, "%d partitions are caught up, not yet all", r.Served)
	}
	select {
	case <-w.stopping:
		r.add(checkStarted, "the worker is stopping")
	default:
	}
}

// checkServer performs the checks that need the server. After a missed answer it reports the
// problems of the last answered check, up to maxMisses times.
func (m *Monitor) checkServer(ctx context.Context, r *Readiness, w *watched, places map[int]observe.Partition) {
	if !w.worker.config.Commit.IsConnected() {
		r.add(checkBroker, "there is no connection to the server")
		return
	}
	var found Readiness
	err := m.queryServer(ctx, &found, w, places)
	if err == nil || !jsapi.NoAnswer(err) {
		m.misses = 0
	} else if m.misses++; m.misses <= maxMisses {
		r.Problems = append(r.Problems, m.found...)
		return
	}
	if err != nil {
		found.add(checkBroker, "%v", err)
	}
	m.found = found.Problems
	r.Problems = append(r.Problems, m.found...)
}

// queryServer queries the server, and returns the first error.
func (m *Monitor) queryServer(ctx context.Context, r *Readiness, w *watched, places map[int]observe.Partition) error {
	if err := topology.Canary(ctx, w.js); err != nil {
		return fmt.Errorf("the server takes no writes: %w", err)
	}
	if err := m.checkStreams(ctx, r, w); err != nil {
		return err
	}
	if err := m.checkLag(ctx, r, w, places); err != nil {
		return err
	}
	for _, lane := range events.Lanes {
		if n, _, err := stream.Jobs(ctx, w.js, lane); err == nil {
			m.metrics.jobs.WithLabelValues(string(lane)).Set(float64(n))
		}
	}
	return nil
}

func (m *Monitor) checkStreams(ctx context.Context, r *Readiness, w *watched) error {
	for _, name := range []string{topology.LogStream, topology.OutcomesStream} {
		s, err := topology.State(ctx, w.js, name)
		if err != nil {
			return err
		}
		m.metrics.streamBytes.WithLabelValues(name).Set(float64(s.Bytes))
		m.metrics.streamBounds.WithLabelValues(name).Set(float64(s.MaxBytes))
		if most := uint64(max(s.MaxBytes, 0)); most > 0 && disk.Scarce(most-min(s.Bytes, most), most) {
			r.add(checkStreams, "%s has too little room: it holds %d of %d bytes; raise its size or shorten its age", name, s.Bytes, most)
		}
	}
	return nil
}

func (m *Monitor) checkLag(ctx context.Context, r *Readiness, w *watched, places map[int]observe.Partition) error {
	for _, id := range slices.Sorted(maps.Keys(places)) {
		at := places[id]
		if !at.Served {
			continue
		}
		oldest, err := stream.Waiting(ctx, w.js, w.worker.parts.Table().Sources(id, at.Cursor), at.Cursor)
		if err != nil {
			return err
		}
		var age time.Duration
		if oldest.Seq == 0 {
			at.Behind = 0
		} else {
			age = max(time.Since(oldest.Time), 0)
		}
		m.metrics.lag(id, at.Behind, age)
		if at.Behind > maxLagEvents || age > m.config.MaxLag {
			r.add(checkLag, "partition %d is %d events and %s behind", id, at.Behind, age.Round(time.Millisecond))
		}
	}
	return nil
}

func (m *Monitor) checkDisk(r *Readiness) {
	free, size, err := disk.Space(m.config.Data)
	if err != nil {
		r.add(checkDisk, "%v", err)
		return
	}
	m.metrics.diskFree.Set(float64(free))
	m.metrics.diskSize.Set(float64(size))
	if disk.Scarce(free, size) {
		r.add(checkDisk, "the disk of %s has too little room: %d of %d bytes are free", m.config.Data, free, size)
	}
}

// export writes the result of a check to the metrics.
func (m *Monitor) export(r *Readiness) {
	for _, c := range allChecks {
		bad := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Check == c })
		m.metrics.checks.WithLabelValues(c).Set(oneIf(!bad))
	}
	m.metrics.ready.Set(oneIf(r.Ready))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
