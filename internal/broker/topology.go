package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// Defaults of a [Topology].
const (
	DefaultPartitions = 8
	DefaultMaxAge     = 30 * 24 * time.Hour
	DefaultDuplicates = 2 * time.Minute

	defaultMaxBytes = 20 << 30
	maxPartitions   = 1024
)

// Topology is what the two streams should be. The zero value of a field requests
// nothing: a new stream gets the default, an existing one stays as it is.
type Topology struct {
	// Partitions of a new log. Default [DefaultPartitions]. An existing log keeps
	// its own, see [Streams].
	Partitions int
	// MaxAge of both streams: how long originals, rewind and replay are promised.
	// Default [DefaultMaxAge].
	MaxAge time.Duration
	// MaxBytesLog and MaxBytesOutcomes bound the streams; -1 is no bound. A full
	// stream refuses what comes, it never drops what it has. The server reserves
	// the bound at creation, and a stream holds no more than its bound when it is
	// changed. Default: up to CreateBytes, as far as account and server have room.
	MaxBytesLog, MaxBytesOutcomes int64
	// CreateBytes is the most that a stream is bounded at which is created now and
	// has no bound of its own above; -1 is no bound. Default 20 GiB; see StreamBytes
	// of an embedded server.
	CreateBytes int64
	// Replicas of a new stream. Default 1.
	Replicas int
	// Compression of a new stream with S2. Reading then costs 1.3 times as much.
	Compression bool
	// Duplicates is how long a new log remembers message ids. Default
	// [DefaultDuplicates], at most MaxAge.
	Duplicates time.Duration
}

// Streams is what Ensure found or created.
type Streams struct {
	// Partitions of the log as it is, whatever was requested.
	Partitions int
	// MaxAge of both streams.
	MaxAge        time.Duration
	Log, Outcomes StreamState
}

// StreamState is a stream at one moment. A log that was recreated has another
// Created, and sequences that start again.
type StreamState struct {
	Created     time.Time
	First, Last uint64 // sequences; First is Last+1 when the stream is empty
	Messages    uint64
	Bytes       uint64
	MaxBytes    int64
	Replicas    int
}

// State reads the present state of a stream: it has at least all that was acknowledged
// before the call. While a cluster has no leader for it that most copies follow, it waits.
func State(ctx context.Context, js jetstream.JetStream, stream string) (StreamState, error) {
	s, err := retryUntilLeader(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		s, err := js.Stream(ctx, stream)
		if err == nil && !hasQuorum(s.CachedInfo().Cluster) {
			err = errNoQuorum
		}
		return s, err
	})
	if err != nil {
		return StreamState{}, fmt.Errorf("read state of %s: %w", stream, err)
	}
	return stateOf(s.CachedInfo()), nil
}

// Mismatch is one setting of an existing stream that compactd cannot work with.
type Mismatch struct{ Stream, Field, Have, Want string }

// TopologyError lists everything about existing streams that compactd can
// neither work with nor change without harm.
type TopologyError struct{ Mismatches []Mismatch }

func (e *TopologyError) Error() string {
	lines := make([]string, len(e.Mismatches))
	for i, m := range e.Mismatches {
		lines[i] = fmt.Sprintf("%s: %s is %s, not %s", m.Stream, m.Field, m.Have, m.Want)
	}
	return "streams do not fit: " + strings.Join(lines, "; ") +
		"; correct them with the nats tool, or use another account or --data"
}

// Ensure creates the two streams, the two buckets of the workers and the store of
// their snapshots, or checks those that are there. It changes age, size bounds and missing subjects of the
// streams in place, and nothing else. Several workers
// may call it at once, whatever each of them requests: streams that another one creates
// meanwhile are taken as they are. It waits for a server that does not answer, see [AwaitServer].
func Ensure(ctx context.Context, js jetstream.JetStream, t Topology) (s *Streams, err error) {
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	err = AwaitServer(ctx, nil, func() error { s, err = t.ensure(ctx, js); return err })
	return s, err
}

func (t *Topology) ensure(ctx context.Context, js jetstream.JetStream) (*Streams, error) {
	log, err := t.ensureLog(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	out, err := t.ensureOutcomes(ctx, js, log.CachedInfo())
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	replicas := log.CachedInfo().Config.Replicas // of the buckets too
	leases, err := ensureBucket(ctx, js, bucketConfig(LeasesBucket, "compactd: who holds which partition", replicas))
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	members, err := ensureBucket(ctx, js, bucketConfig(MembersBucket, "compactd: running workers", replicas))
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	bad := slices.Concat(checkLog(log.CachedInfo().Config), checkOutcomes(out.CachedInfo().Config), leases, members)
	if len(bad) > 0 {
		return nil, fmt.Errorf("ensure streams: %w", &TopologyError{bad})
	}
	if err := t.change(ctx, js, log, out); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	if lc, oc := log.CachedInfo().Config, out.CachedInfo().Config; lc.MaxAge != oc.MaxAge {
		return nil, fmt.Errorf("ensure streams: %w", &TopologyError{[]Mismatch{
			{OutcomesStream, "max age", oc.MaxAge.String(), lc.MaxAge.String() + " as in " + LogStream},
		}})
	}
	if bad, err = ensureSnapshots(ctx, js, log.CachedInfo().Config.MaxAge, replicas); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("ensure streams: %w", &TopologyError{bad})
	}
	return streamsOf(log, out), nil
}

// ErrNoStreams: no worker has ever run against this server.
var ErrNoStreams = errors.New("the server has no compactd streams; start a worker first")

// Describe returns the streams that a worker has created, without creating, changing or
// checking any.
func Describe(ctx context.Context, js jetstream.JetStream) (*Streams, error) {
	var found [2]jetstream.Stream
	for i, name := range []string{LogStream, OutcomesStream} {
		s, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, ErrNoStreams
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", name, err)
		}
		found[i] = s
	}
	if _, ok := partitionsOf(found[0].CachedInfo().Config.SubjectTransform); !ok {
		return nil, fmt.Errorf("look up %s: %w", LogStream, &TopologyError{checkLog(found[0].CachedInfo().Config)})
	}
	return streamsOf(found[0], found[1]), nil
}

func streamsOf(log, out jetstream.Stream) *Streams {
	c := log.CachedInfo().Config
	p, _ := partitionsOf(c.SubjectTransform)
	return &Streams{Partitions: p, MaxAge: c.MaxAge, Log: stateOf(log.CachedInfo()), Outcomes: stateOf(out.CachedInfo())}
}

func (t *Topology) validate() error {
	var errs []error
	check := func(ok bool, format string, v ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, v...))
		}
	}
	check(t.Partitions >= 0 && t.Partitions <= maxPartitions, "partitions %d is not 1 to %d", t.Partitions, maxPartitions)
	check(t.MaxAge == 0 || t.MaxAge >= time.Second, "max age %s is below a second", t.MaxAge)
	check(t.MaxBytesLog >= -1, "max bytes of the log %d is negative", t.MaxBytesLog)
	check(t.MaxBytesOutcomes >= -1, "max bytes of the outcomes %d is negative", t.MaxBytesOutcomes)
	check(t.CreateBytes >= -1, "create bytes %d is negative", t.CreateBytes)
	check(t.Replicas >= 0 && t.Replicas <= 5, "replicas %d is not 1 to 5", t.Replicas)
	check(t.Duplicates >= 0, "duplicates %s is negative", t.Duplicates)
	return errors.Join(errs...)
}

// common is what both streams of a new topology share.
func (t *Topology) common(name string, maxBytes int64) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:       name,
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardNew,
		MaxAge:     cmp.Or(t.MaxAge, DefaultMaxAge),
		MaxBytes:   cmp.Or(maxBytes, t.CreateBytes, defaultMaxBytes),
		Replicas:   cmp.Or(t.Replicas, 1),
		Duplicates: min(cmp.Or(t.Duplicates, DefaultDuplicates), cmp.Or(t.MaxAge, DefaultMaxAge)),
	}
	if t.Compression {
		c.Compression = jetstream.S2Compression
	}
	return c
}

func (t *Topology) logConfig() jetstream.StreamConfig {
	c := t.common(LogStream, t.MaxBytesLog)
	c.Description = "compactd: what agents publish, partitioned"
	c.Subjects = logSubjects()
	c.AllowDirect = true // text is read by sequence, from any replica
	c.SubjectTransform = &jetstream.SubjectTransformConfig{
		Source:      events.InputPattern,
		Destination: events.LogTransform(cmp.Or(t.Partitions, DefaultPartitions)),
	}
	return c
}

func (t *Topology) outcomesConfig() jetstream.StreamConfig {
	c := t.common(OutcomesStream, t.MaxBytesOutcomes)
	c.Description = "compactd: outcomes, jobs and markers"
	c.Subjects = outcomesSubjects()
	c.AllowAtomicPublish = true
	c.RePublish = &jetstream.RePublish{Source: events.OutcomesFilter, Destination: events.OutcomesRepublish}
	return c
}

func logSubjects() []string {
	out := make([]string, len(events.LogKinds))
	for i, k := range events.LogKinds {
		out[i] = events.InputFilter(k)
	}
	return out
}

func outcomesSubjects() []string { return []string{"out.>"} }

// change applies what is requested to the streams. The one that gives up room goes first.
func (t *Topology) change(ctx context.Context, js jetstream.JetStream, log, out jetstream.Stream) error {
	if err := errors.Join(refuseBelowUse(log, t.MaxBytesLog), refuseBelowUse(out, t.MaxBytesOutcomes)); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return update(ctx, js, log, t.logChanges) },
		func() error { return update(ctx, js, out, t.outcomesChanges) },
	}
	if t.MaxBytesLog > log.CachedInfo().Config.MaxBytes {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// update applies change to the configuration of s, when it changes anything.
func update(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, change func(*jetstream.StreamConfig) bool) error {
	c := s.CachedInfo().Config
	if !change(&c) {
		return nil
	}
	if _, err := js.UpdateStream(ctx, c); err != nil {
		if noRoom(err) {
			return &StorageError{"update " + c.Name, c.MaxBytes, err}
		}
		return fmt.Errorf("update %s: %w", c.Name, err)
	}
	_, err := s.Info(ctx)
	return wrap(err, "look up %s", c.Name)
}

func (t *Topology) logChanges(c *jetstream.StreamConfig) bool {
	a, b := addSubjects(c, logSubjects()), t.bounds(c, t.MaxBytesLog)
	return a || b
}

func (t *Topology) outcomesChanges(c *jetstream.StreamConfig) bool {
	a, b := addSubjects(c, outcomesSubjects()), t.bounds(c, t.MaxBytesOutcomes)
	return a || b
}

func (t *Topology) bounds(c *jetstream.StreamConfig, maxBytes int64) (changed bool) {
	if t.MaxAge != 0 && t.MaxAge != c.MaxAge {
		c.MaxAge, changed = t.MaxAge, true
		c.Duplicates = min(c.Duplicates, t.MaxAge)
	}
	if maxBytes != 0 && maxBytes != c.MaxBytes {
		c.MaxBytes, changed = maxBytes, true
	}
	return changed
}

func addSubjects(c *jetstream.StreamConfig, want []string) (changed bool) {
	for _, w := range want {
		covered := slices.ContainsFunc(c.Subjects, func(have string) bool { return covers(have, w) })
		if !covered {
			c.Subjects, changed = append(slices.Clip(c.Subjects), w), true
		}
	}
	return changed
}

func checkLog(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.common(c)
	m.equal("direct get", c.AllowDirect, true)
	if _, ok := partitionsOf(c.SubjectTransform); !ok {
		m.add("subject transform", show(c.SubjectTransform), "from "+events.InputPattern+" to "+events.LogTransform(DefaultPartitions)+" or another number")
	}
	for _, k := range events.OutcomeKinds {
		published := events.Published(k, events.Address{Tenant: "*", Session: "*"})
		for _, s := range c.Subjects {
			if collide(s, published) {
				m.add("subject", s, "one that catches "+published)
			}
		}
	}
	return m.list
}

func checkOutcomes(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.common(c)
	m.equal("direct get", c.AllowDirect, false)
	m.equal("atomic publish", c.AllowAtomicPublish, true)
	if c.SubjectTransform != nil {
		m.add("subject transform", show(c.SubjectTransform), "none")
	}
	if r := c.RePublish; r == nil || r.Source != events.OutcomesFilter || r.Destination != events.OutcomesRepublish || r.HeadersOnly {
		m.add("republish", showRepublish(r), "from "+events.OutcomesFilter+" to "+events.OutcomesRepublish)
	}
	return m.list
}

// mismatches collects what is wrong with one stream.
type mismatches struct {
	stream string
	list   []Mismatch
}

func (m *mismatches) add(field, have, want string) {
	m.list = append(m.list, Mismatch{m.stream, field, have, want})
}

func (m *mismatches) equal(field string, have, want any) {
	if have != want {
		m.add(field, fmt.Sprint(have), fmt.Sprint(want))
	}
}

// common checks what would lose messages, let clients erase them, leave publishers
// without an answer, or keep sessions from being erased.
func (m *mismatches) common(c jetstream.StreamConfig) {
	m.equal("retention", c.Retention, jetstream.LimitsPolicy)
	m.equal("storage", c.Storage, jetstream.FileStorage)
	m.equal("discard", c.Discard, jetstream.DiscardNew)
	m.equal("max messages", max(c.MaxMsgs, 0), int64(0))
	m.equal("max messages per subject", max(c.MaxMsgsPerSubject, 0), int64(0))
	m.equal("no ack", c.NoAck, false)
	m.equal("sealed", c.Sealed, false)
	m.equal("rollup", c.AllowRollup, false)
	m.equal("deny delete", c.DenyDelete, false)
	m.equal("deny purge", c.DenyPurge, false)
	m.equal("mirror", c.Mirror != nil, false)
	m.equal("sources", len(c.Sources), 0)
}

// partitionsOf reads P back from the transform of an existing log.
func partitionsOf(t *jetstream.SubjectTransformConfig) (int, bool) {
	if t == nil || t.Source != events.InputPattern {
		return 0, false
	}
	var p int
	if _, err := fmt.Sscanf(t.Destination, "log.{{partition(%d,", &p); err != nil || p < 1 {
		return 0, false
	}
	return p, t.Destination == events.LogTransform(p)
}

func show(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return "from " + t.Source + " to " + t.Destination
}

func showRepublish(r *jetstream.RePublish) string {
	if r == nil {
		return "none"
	}
	s := "from " + r.Source + " to " + r.Destination
	if r.HeadersOnly {
		s += ", headers only"
	}
	return s
}

func stateOf(i *jetstream.StreamInfo) StreamState {
	return StreamState{
		Created: i.Created, First: i.State.FirstSeq, Last: i.State.LastSeq,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, MaxBytes: i.Config.MaxBytes, Replicas: i.Config.Replicas,
	}
}

// wrap adds the step to an error; nil stays nil.
func wrap(err error, format string, v ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(v, err)...)
}
