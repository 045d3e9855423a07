package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Inspection describes the two streams, the audit log, the buckets and the store of snapshots.
type Inspection struct {
	*Streams
	// Mismatches are the settings that [Ensure] would refuse or correct.
	Mismatches []Mismatch
	// Replicas of the streams, the log first. Behind lists their servers that are offline
	// or not up to date.
	Replicas [2]int
	Behind   []string
	// NoAudit: the audit log is missing. Each worker creates it at its start.
	NoAudit bool
	// Time is the server's time during the call.
	Time time.Time
}

// Inspect describes the streams that a worker has created, with their mismatches. It changes nothing.
// [ErrNoStreams]: there are no streams.
func Inspect(ctx context.Context, js jetstream.JetStream) (*Inspection, error) {
	first, second, err := find(ctx, js)
	if err != nil {
		return nil, err
	}
	s := &Inspection{Streams: streamsOf(first, second)}
	for i, info := range []*jetstream.StreamInfo{first.CachedInfo(), second.CachedInfo()} {
		s.Replicas[i], s.Time = info.Config.Replicas, info.TimeStamp
		s.addBehind(info)
	}
	log, out := first.CachedInfo().Config, second.CachedInfo().Config
	s.Mismatches = append(checkLog(log), checkOutcomes(out)...)
	for _, m := range []struct {
		have []string
		want []string
		name string
	}{{log.Subjects, logSubjects(), LogStream}, {out.Subjects, outcomesSubjects(), OutcomesStream}} {
		c := jetstream.StreamConfig{Subjects: m.have}
		if addSubjects(&c, m.want) {
			s.Mismatches = append(s.Mismatches, Mismatch{m.name, "subjects", fmt.Sprint(m.have), fmt.Sprint(c.Subjects)})
		}
	}
	if log.MaxAge != out.MaxAge {
		s.Mismatches = append(s.Mismatches, Mismatch{OutcomesStream, "max age", out.MaxAge.String(), log.MaxAge.String() + " as in " + LogStream})
	}
	store, err := lookUp(ctx, js, SnapshotsStream)
	if err != nil {
		return nil, err
	}
	if store != nil { // the next start of a worker creates a missing one
		s.Mismatches = append(s.Mismatches, checkSnapshots(store.CachedInfo().Config)...)
		s.addBehind(store.CachedInfo())
	}
	audit, err := lookUp(ctx, js, AuditStream)
	if err != nil {
		return nil, err
	}
	if s.NoAudit = audit == nil; audit != nil {
		s.addBehind(audit.CachedInfo())
	}
	return s, s.inspectBuckets(ctx, js)
}

// inspectBuckets checks the buckets of the workers. A bucket with fewer copies than the streams
// may be lost with one server, and then all workers stop.
func (s *Inspection) inspectBuckets(ctx context.Context, js jetstream.JetStream) error {
	for _, bucket := range buckets {
		name := StreamOf(bucket.name)
		one, err := lookUp(ctx, js, name)
		if err != nil {
			return err
		}
		if one == nil {
			s.Mismatches = append(s.Mismatches, Mismatch{name, "bucket", "missing", "there; the next worker that starts creates it"})
			continue
		}
		info := one.CachedInfo()
		s.addBehind(info)
		m := mismatches{stream: name, list: checkBucket(info.Config, historyOf(bucket.name))}
		m.equal("copies", info.Config.Replicas, s.Replicas[1])
		s.Mismatches = append(s.Mismatches, m.list...)
	}
	return nil
}

func (s *Inspection) addBehind(info *jetstream.StreamInfo) {
	if info.Cluster == nil {
		return
	}
	for _, r := range info.Cluster.Replicas {
		switch {
		case r.Offline:
			s.Behind = append(s.Behind, fmt.Sprintf("%s of %s is offline", r.Name, info.Config.Name))
		case !r.Current:
			s.Behind = append(s.Behind, fmt.Sprintf("%s of %s is %d entries behind", r.Name, info.Config.Name, r.Lag))
		}
	}
}
