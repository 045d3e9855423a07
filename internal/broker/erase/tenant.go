package erase

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Any selects all tenants, or all partitions.
const Any = "*"

// Sessions lists the sessions of a tenant in one partition that can be erased, sorted by name: the streams hold
// more of them than their erasure. The list includes ended sessions and unfinished erasures.
func Sessions(ctx context.Context, js jetstream.JetStream, partition, tenant string) ([]events.Address, error) {
	found := map[events.Address]bool{}
	for _, of := range []struct {
		stream, filter string
		residue        []events.Kind
	}{
		{topology.LogStream, "log." + partition + ".*." + tenant + ".*", []events.Kind{events.KindForget}},
		{topology.OutcomesStream, "out." + partition + ".*." + tenant + ".*", []events.Kind{events.KindForgotten, events.KindErased}},
	} {
		s, err := js.Stream(ctx, of.stream)
		if err != nil {
			return nil, fmt.Errorf("list sessions of %s: %w", tenant, err)
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(of.filter))
		if err != nil {
			return nil, fmt.Errorf("list sessions of %s: %w", tenant, err)
		}
		for subject := range info.State.Subjects {
			at, err := parse(of.stream, subject)
			if err == nil && !slices.Contains(of.residue, at.Kind) && at.Address.Validate() == nil {
				found[at.Address] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b events.Address) int { return cmp.Compare(a.Session, b.Session) }), nil
}

func parse(stream, subject string) (events.Location, error) {
	if stream == topology.LogStream {
		return events.ParseLog(subject)
	}
	return events.ParseOutcome(subject)
}
