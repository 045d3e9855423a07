package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// Defaults of a [Config].
const (
	DefaultPartitions = 8
	DefaultMaxAge     = 30 * 24 * time.Hour
	DefaultDuplicates = 2 * time.Minute // how long a new log remembers message ids, at most its age

	defaultMaxBytes = 20 << 30
)

// Config describes the two streams. The zero value of a field requests nothing: a new
// stream gets the default, an existing one keeps its setting.
type Config struct {
	// Partitions of a new log. Default [DefaultPartitions]. An existing log keeps
	// its number, see [Streams].
	Partitions int
	// MaxAge of both streams: the promised time for originals, rewind and replay.
	// Default [DefaultMaxAge].
	MaxAge time.Duration
	// MaxBytesLog and MaxBytesOutcomes bound the streams; -1 means no bound. A full
	// stream refuses new messages and never drops stored ones. The server reserves
	// the bound at creation. A bound below the present size of a stream is refused.
	// Default: up to CreateBytes, as far as account and server have space.
	MaxBytesLog, MaxBytesOutcomes int64
	// CreateBytes is the highest bound of a new stream without a bound of the two above; -1
	// means no bound. Default 20 GiB; see StreamBytes of an embedded server.
	CreateBytes int64
	// Replicas of a new stream. Default 1.
	Replicas int
}

// Ensure creates the two streams, the buckets of the workers and the store of snapshots, or checks
// the existing ones. It changes only age, size bounds and missing subjects of existing
// streams. Several workers may call it at once, even with different configs: it takes a stream that
// another worker has created as it is. It waits for a server that does not answer, see [jsapi.AwaitServer].
// See docs/adr/0012.
func Ensure(ctx context.Context, js jetstream.JetStream, t Config) (s *Streams, err error) {
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	err = jsapi.AwaitServer(ctx, nil, func() error { s, err = t.ensure(ctx, js); return err })
	return s, err
}

func (t *Config) ensure(ctx context.Context, js jetstream.JetStream) (*Streams, error) {
	log, err := t.ensureLog(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	out, err := t.ensureOutcomes(ctx, js, log.CachedInfo())
	if err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	replicas := log.CachedInfo().Config.Replicas // the buckets get the same
	bad := slices.Concat(checkLog(log.CachedInfo().Config), checkOutcomes(out.CachedInfo().Config))
	for _, b := range buckets {
		wrong, err := ensureBucket(ctx, js, bucketConfig(b.name, b.description, replicas))
		if err != nil {
			return nil, fmt.Errorf("ensure streams: %w", err)
		}
		bad = append(bad, wrong...)
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("ensure streams: %w", &MismatchError{bad})
	}
	if err := t.change(ctx, js, log, out); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	if lc, oc := log.CachedInfo().Config, out.CachedInfo().Config; lc.MaxAge != oc.MaxAge {
		return nil, fmt.Errorf("ensure streams: %w", &MismatchError{[]Mismatch{
			{OutcomesStream, "max age", oc.MaxAge.String(), lc.MaxAge.String() + " as in " + LogStream},
		}})
	}
	if bad, err = ensureSnapshots(ctx, js, log.CachedInfo().Config.MaxAge, replicas); err != nil {
		return nil, fmt.Errorf("ensure streams: %w", err)
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("ensure streams: %w", &MismatchError{bad})
	}
	return streamsOf(log, out), nil
}

func (t *Config) validate() error {
	var errs []error
	check := func(ok bool, format string, v ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, v...))
		}
	}
	check(t.Partitions >= 0 && t.Partitions <= partitions.Most, "partitions %d is not 1 to %d", t.Partitions, partitions.Most)
	check(t.MaxAge == 0 || t.MaxAge >= time.Second, "max age %s is below a second", t.MaxAge)
	check(t.MaxBytesLog >= -1, "max bytes of the log %d is negative", t.MaxBytesLog)
	check(t.MaxBytesOutcomes >= -1, "max bytes of the outcomes %d is negative", t.MaxBytesOutcomes)
	check(t.CreateBytes >= -1, "create bytes %d is negative", t.CreateBytes)
	check(t.Replicas >= 0 && t.Replicas <= 5, "replicas %d is not 1 to 5", t.Replicas)
	return errors.Join(errs...)
}

// common returns the settings that both new streams share.
func (t *Config) common(name string, maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       name,
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardNew,
		MaxAge:     cmp.Or(t.MaxAge, DefaultMaxAge),
		MaxBytes:   cmp.Or(maxBytes, t.CreateBytes, defaultMaxBytes),
		Replicas:   cmp.Or(t.Replicas, 1),
		Duplicates: min(DefaultDuplicates, cmp.Or(t.MaxAge, DefaultMaxAge)),
	}
}

func (t *Config) logConfig() jetstream.StreamConfig {
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

func (t *Config) outcomesConfig() jetstream.StreamConfig {
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

// change applies the config to the streams. It first changes the stream that frees space.
func (t *Config) change(ctx context.Context, js jetstream.JetStream, log, out jetstream.Stream) error {
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

// update applies change to the configuration of s, if it changes anything. An update replaces the whole
// configuration without a comparison, so update reads it again right before.
func update(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, change func(*jetstream.StreamConfig) bool) error {
	if c := s.CachedInfo().Config; !change(&c) {
		return nil
	}
	info, err := s.Info(ctx)
	if err != nil {
		return jsapi.Wrap(err, "look up %s", s.CachedInfo().Config.Name)
	}
	c := info.Config
	if !change(&c) {
		return nil
	}
	if _, err := js.UpdateStream(ctx, c); err != nil {
		if jsapi.NoRoom(err) {
			return &StorageError{"update " + c.Name, c.MaxBytes, err}
		}
		return fmt.Errorf("update %s: %w", c.Name, err)
	}
	_, err = s.Info(ctx)
	return jsapi.Wrap(err, "look up %s", c.Name)
}

func (t *Config) logChanges(c *jetstream.StreamConfig) bool {
	a, b := addSubjects(c, logSubjects()), t.bounds(c, t.MaxBytesLog)
	return a || b
}

func (t *Config) outcomesChanges(c *jetstream.StreamConfig) bool {
	a, b := addSubjects(c, outcomesSubjects()), t.bounds(c, t.MaxBytesOutcomes)
	return a || b
}

func (t *Config) bounds(c *jetstream.StreamConfig, maxBytes int64) (changed bool) {
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
