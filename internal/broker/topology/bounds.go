package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
)

const (
	// leastBytes is the smallest bound that compactd chooses by itself.
	leastBytes = 64 << 20
	// metaMaxBytes is an entry in the metadata of a new log: it is created with room for
	// OUTCOMES too, and gets this bound before OUTCOMES is created. Any worker that finds
	// the entry sets the bound, so it does not matter where the creator crashed.
	metaMaxBytes = "compactd.max_bytes"
	// A stream for which the server has no room may be there a moment later, since another
	// worker creates it. So it is looked up and created again, after createPause: often
	// where the bound is fixed, once before a smaller bound is tried.
	createPause = 50 * time.Millisecond
	fixedTries  = 10
	sizeTries   = 2
)

// roomFor is what a new log is created with for a bound of its own: OUTCOMES gets as much,
// and half of it again stays free: an eighth for AUDIT, the rest for what reserves nothing, such as snapshots.
func roomFor(maxBytes int64) int64 { return maxBytes / 2 * 5 }

// StorageError reports that the server, or the account, has no room for a stream.
type StorageError struct {
	Step  string // such as "create SESSIONS"
	Bytes int64  // requested last
	Err   error  // of the server
}

// Error names the step, the size and what to do.
func (e *StorageError) Error() string {
	return fmt.Sprintf("%s: the server cannot reserve %s: %v; request less, or raise the limit of the server (max_file_store) or of the account",
		e.Step, humanize.IBytes(uint64(max(e.Bytes, 0))), e.Err)
}

// Unwrap returns the answer of the server.
func (e *StorageError) Unwrap() error { return e.Err }

// ensureLog returns the log as it is, or creates it. Without a bound of its own it gets
// the largest one for which OUTCOMES has as much room.
func (t *Config) ensureLog(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	s, err := lookUp(ctx, js, LogStream)
	if err != nil {
		return nil, err
	}
	if s == nil {
		c := t.logConfig()
		if t.MaxBytesLog != 0 || c.MaxBytes < 0 {
			s, err = create(ctx, js, c, fixedTries)
		} else {
			s, err = createWithRoom(ctx, js, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return shrinkLog(ctx, js, s)
}

// ensureOutcomes does the same for OUTCOMES, which gets the bound of the log, or less
// where that is not to be had.
func (t *Config) ensureOutcomes(ctx context.Context, js jetstream.JetStream, log *jetstream.StreamInfo) (jetstream.Stream, error) {
	s, err := lookUp(ctx, js, OutcomesStream)
	if s != nil || err != nil {
		return s, err
	}
	c := t.outcomesConfig()
	if t.MaxBytesOutcomes != 0 || c.MaxBytes < 0 {
		return create(ctx, js, c, fixedTries)
	}
	if have := log.Config.MaxBytes; have > 0 {
		c.MaxBytes = min(c.MaxBytes, have)
	}
	return createLargest(ctx, js, c, leastBytes, func(size int64) jetstream.StreamConfig {
		c.MaxBytes = size
		return c
	})
}

// createWithRoom creates the log as large as log and OUTCOMES together.
func createWithRoom(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	most, err := accountLimit(ctx, js, c.Replicas)
	if err != nil {
		return nil, err
	}
	if most > 0 {
		c.MaxBytes = min(c.MaxBytes, max(most, leastBytes))
	}
	return createLargest(ctx, js, c, leastBytes, func(size int64) jetstream.StreamConfig {
		c.MaxBytes, c.Metadata = roomFor(size), map[string]string{metaMaxBytes: strconv.FormatInt(size, 10)}
		return c
	})
}

// shrinkLog removes the room for OUTCOMES from a new log.
func shrinkLog(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) (jetstream.Stream, error) {
	c := s.CachedInfo().Config
	maxBytes, _ := strconv.ParseInt(c.Metadata[metaMaxBytes], 10, 64) // 0 without the entry
	if maxBytes <= 0 {
		return s, nil
	}
	c.MaxBytes, c.Metadata = maxBytes, maps.Clone(c.Metadata)
	delete(c.Metadata, metaMaxBytes)
	s, err := js.UpdateStream(ctx, c)
	return s, jsapi.Wrap(err, "update %s", c.Name)
}

// accountLimit is the largest bound of a stream that the account's limits allow, when log and
// OUTCOMES get the same; 0 when the account has none. The server shows the room that it has
// itself only by its refusals.
func accountLimit(ctx context.Context, js jetstream.JetStream, replicas int) (int64, error) {
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return 0, fmt.Errorf("look up the limits of the account: %w", err)
	}
	tier, copies := info.Tier, int64(replicas) // a flat limit counts every copy
	if len(info.Tiers) > 0 {
		tier, copies = info.Tiers[fmt.Sprintf("R%d", replicas)], 1
	}
	var most int64
	if limit := tier.Limits.MaxStore; limit > 0 {
		free := max(0, limit-int64(max(tier.Store, tier.ReservedStore)))
		most = max(1, free/copies/5*2)
	}
	if limit := tier.Limits.StoreMaxStreamBytes; limit > 0 { // of one stream, room included
		most = min(cmp.Or(most, limit/5*2), limit/5*2)
	}
	return most, nil
}

// createLargest creates a stream with the largest bound that there is room for: that of
// c, then a quarter less each time, down to least. of is the configuration for a bound.
func createLargest(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig, least int64, of func(size int64) jetstream.StreamConfig) (jetstream.Stream, error) {
	least = min(least, c.MaxBytes)
	for size := c.MaxBytes; ; size = max(size/4*3, least) {
		s, err := create(ctx, js, of(size), sizeTries)
		if size <= least || !jsapi.NoRoom(err) {
			return s, err
		}
	}
}

// create creates a stream, or returns the one that another worker created meanwhile,
// whatever its settings are.
func create(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig, tries int) (s jetstream.Stream, err error) {
	err = retry.Every(createPause).Until(ctx, func() (bool, error) {
		var err error
		if s, err = js.CreateStream(ctx, c); err == nil {
			return true, nil
		}
		full := jsapi.NoRoom(err)
		if !full && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return false, fmt.Errorf("create %s: %w", c.Name, err)
		}
		there, other := lookUp(ctx, js, c.Name)
		if s = there; s != nil || other != nil {
			return true, other
		}
		if tries--; tries > 0 {
			return false, nil
		}
		if full {
			return false, &StorageError{"create " + c.Name, c.MaxBytes, err}
		}
		return false, fmt.Errorf("create %s: %w", c.Name, err)
	})
	return s, err
}

// lookUp returns a stream; nil when there is none.
func lookUp(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return s, jsapi.Wrap(err, "look up %s", name)
}

// refuseBelowUse refuses a bound below what a stream holds: it would refuse every message.
func refuseBelowUse(s jetstream.Stream, maxBytes int64) error {
	if i := s.CachedInfo(); maxBytes > 0 && uint64(maxBytes) < i.State.Bytes {
		return fmt.Errorf("bound %s: it holds %s, more than %s, and would refuse every message; shorten its age first, or allow more",
			i.Config.Name, humanize.IBytes(i.State.Bytes), humanize.IBytes(uint64(max(maxBytes, 0))))
	}
	return nil
}
