package service

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
)

// fleetTime limits the reports of workers; a stopped worker is listed without its state.
const fleetTime = time.Second

// started is the approximate start of the process.
var started = time.Now().UnixMilli()

// callFleet is the call of a request for the fleet.
func (s *Service) callFleet(in *events.FleetRequest) *call {
	return &call{
		tenant: events.AnyTenant, partition: s.partitionOf(in.Partition), in: in,
		answer: func(ctx context.Context) (any, error) { return s.fleet(ctx, in) },
	}
}

// fleet lists the partitions with their owners, and the workers with their states.
func (s *Service) fleet(ctx context.Context, in *events.FleetRequest) (*events.FleetResponse, error) {
	if err := s.checkPartition(in.Partition); err != nil {
		return nil, err
	}
	if in.Partition != nil {
		return s.served(ctx, int(*in.Partition))
	}
	answers, _, err := gather[events.FleetResponse](ctx, s, "fleet", fleetTime, func(p int64) *call { return s.callFleet(&events.FleetRequest{Partition: &p}) })
	if err != nil {
		return nil, err
	}
	out := s.self()
	for _, a := range answers {
		if a != nil {
			merge(out, a)
		}
	}
	return Reading(ctx, func() (*events.FleetResponse, error) {
		for id, a := range answers {
			p, err := s.stored(ctx, id, a)
			if err != nil {
				return nil, orEnded(ctx, err)
			}
			out.Partitions = append(out.Partitions, p)
		}
		for _, lane := range events.Lanes {
			waiting, running, _ := stream.Jobs(ctx, s.config.JS, lane) // 0 before the first job
			out.Lanes = append(out.Lanes, events.FleetLane{Lane: lane, Waiting: waiting, Running: running})
		}
		slices.SortStableFunc(out.Feed, func(a, b events.FleetNote) int { return cmp.Compare(b.Time, a.Time) })
		if err := s.name(ctx, out); err != nil {
			return nil, err
		}
		for i := range out.Workers { // also those that do not answer
			w := &out.Workers[i]
			for _, p := range out.Partitions {
				if w.Owner == p.Owner {
					w.Lag = max(w.Lag, p.Lag)
				}
			}
		}
		return out, nil
	})
}

// self is this worker.
func (s *Service) self() *events.FleetResponse {
	h := s.health()
	w := events.FleetWorker{
		Owner: h.Owner, Version: h.Version, Config: h.Config, HTTP: s.config.HTTP, Status: h.Status, Partitions: h.Partitions,
		Started: started, CPUs: int64(runtime.GOMAXPROCS(0)), Answered: true, Commits: s.config.Board.Commits(),
	}
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		w.CPU = (used.Utime.Nano() + used.Stime.Nano()) / int64(time.Millisecond)
	}
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(memory)
	w.Memory = int64(memory[0].Value.Uint64() - memory[1].Value.Uint64())
	if most := debug.SetMemoryLimit(-1); most != math.MaxInt64 {
		w.MaxMemory = most
	}
	out := &events.FleetResponse{
		V: events.Version, Time: time.Now().UnixMilli(), Partitions: []events.FleetPartition{}, Workers: []events.FleetWorker{w},
		Lanes: []events.FleetLane{}, Models: s.config.Board.Models(), Feed: s.config.Board.Notes(),
	}
	for i := range out.Models {
		out.Models[i].Owner = h.Owner
	}
	for i := range out.Feed {
		out.Feed[i].Owner = h.Owner
	}
	return out
}

// served is this worker, and a partition that it serves.
func (s *Service) served(ctx context.Context, id int) (*events.FleetResponse, error) {
	if id >= s.config.Partitions.Count() || s.config.Partitions.At(id) == nil {
		return nil, ErrNotServed
	}
	out, p := s.self(), s.config.Board.Partition(id)
	behind, lag, err := stream.Backlog(ctx, s.config.JS, s.config.Partitions.Table().Sources(id, p.Cursor), p.Cursor)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	p.Behind, p.Lag = behind, lag.Milliseconds()
	p.Owner, p.Served = s.config.Owner, true
	out.Partitions = append(out.Partitions, p)
	return out, nil
}

// merge adds the worker of an answer, unless it is there.
func merge(out, a *events.FleetResponse) {
	for _, w := range a.Workers {
		if slices.ContainsFunc(out.Workers, func(x events.FleetWorker) bool { return x.Owner == w.Owner }) {
			return
		}
	}
	out.Workers, out.Models, out.Feed = append(out.Workers, a.Workers...), append(out.Models, a.Models...), append(out.Feed, a.Feed...)
}

// stored adds the state of a partition on the server to the answer of its owner, nil without one.
func (s *Service) stored(ctx context.Context, id int, a *events.FleetResponse) (p events.FleetPartition, err error) {
	p.Partition = int64(id)
	if a != nil && len(a.Partitions) == 1 {
		p = a.Partitions[0]
	} else if decides, err := s.config.Partitions.Decides(ctx, id); err != nil {
		return p, err
	} else if decides {
		m, err := commit.LastMarker(ctx, s.config.Answers, id)
		if err != nil {
			return p, err
		}
		p.Owner, p.Epoch, p.Cursor = m.Owner, m.Epoch, m.Cursor
		behind, lag, err := stream.Backlog(ctx, s.config.JS, s.config.Partitions.Table().Sources(id, m.Cursor), m.Cursor)
		if err != nil {
			return p, err
		}
		p.Behind, p.Lag = behind, lag.Milliseconds()
	}
	age, held, err := coord.LeaseAge(ctx, s.config.JS, id)
	if err != nil {
		return p, err
	}
	p.Leased, p.LeaseAge = held, age.Milliseconds()
	newest, err := snapshot.New(s.config.JS).Newest(ctx, id)
	if errors.Is(err, snapshot.ErrNone) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return p, nil
	}
	if err == nil {
		p.Snapshot, p.Bytes = newest.Time.UnixMilli(), int64(newest.Bytes)
	}
	return p, err
}

// name adds the names of workers, and those that serve no partition.
func (s *Service) name(ctx context.Context, out *events.FleetResponse) error {
	var all []coord.Member
	stop, err := coord.NewMembers(s.config.JS, time.Second).Watch(ctx, func(m coord.Member, running bool) {
		if running {
			all = append(all, m)
		}
	}, func(error) {})
	if err != nil {
		return orEnded(ctx, err)
	}
	stop() // before all is read
	for _, m := range all {
		i := slices.IndexFunc(out.Workers, func(w events.FleetWorker) bool { return w.Owner == m.Owner })
		if i < 0 {
			out.Workers = append(out.Workers, events.FleetWorker{Owner: m.Owner, Name: m.Name})
			continue
		}
		out.Workers[i].Name = m.Name
	}
	slices.SortFunc(out.Workers, func(a, b events.FleetWorker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return nil
}
