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
	// leastBytes is the smallest bound that compactd chooses.
	leastBytes = 64 << 20
	// metaMaxBytes is an entry in the metadata of a new log. The log is created with space for
	// OUTCOMES too, and gets the entry's bound before OUTCOMES is created. Any worker that
	// finds the entry sets the bound, so the creator may crash at any point.
	metaMaxBytes = "compactd.max_bytes"
	// If the server has no space for a stream, another worker may be creating it. So it is
	// looked up and created again after createPause: up to fixedTries attempts with a fixed
	// bound, sizeTries before a smaller bound is tried.
	createPause = 50 * time.Millisecond
	fixedTries  = 10
	sizeTries   = 2
)

// roomFor returns the initial size of a new log with a bound: the same for OUTCOMES, and half of it
// for AUDIT (an eighth of the bound) and streams that reserve nothing, such as snapshots.
func roomFor(maxBytes int64) int64 { return maxBytes / 2 * 5 }

// StorageError reports that the server or the account has no space for a stream.
type StorageError struct {
	Step  string // such as "create SESSIONS"
	Bytes int64  // of the last request
	Err   error  // of the server
}

// Error names the step, the size and what to do.
func (e *StorageError) Error() string {
	return fmt.Sprintf("%s: the server cannot reserve %s: %v; request less, or raise the limit of the server (max_file_store) or of the account",
		e.Step, humanize.IBytes(uint64(max(e.Bytes, 0))), e.Err)
}

// Unwrap returns the answer of the server.
func (e *StorageError) Unwrap() error { return e.Err }

// ensureLog returns the existing log, or creates it. Without a configured bound it gets
// the largest bound that leaves the same space for OUTCOMES.
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
// if the server has less space.
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
	return createLargest(ctx, js, c, leastBytes, nil)
}

// createWithRoom creates the log with space for OUTCOMES, see metaMaxBytes.
func createWithRoom(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	most, err := accountLimit(ctx, js, c.Replicas)
	if err != nil {
		return nil, err
	}
	if most > 0 {
		c.MaxBytes = min(c.MaxBytes, max(most, leastBytes))
	}
	return createLargest(ctx, js, c, leastBytes, func(c *jetstream.StreamConfig) {
		c.MaxBytes, c.Metadata = roomFor(c.MaxBytes), map[string]string{metaMaxBytes: strconv.FormatInt(c.MaxBytes, 10)}
	})
}

// shrinkLog removes the space for OUTCOMES from a new log.
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

// accountLimit returns the largest bound that the account's limits allow for log and OUTCOMES
// each; 0 without limits. The server's own space shows only in its refusals.
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
	if limit := tier.Limits.StoreMaxStreamBytes; limit > 0 { // of one stream: the new log with space for OUTCOMES
		most = min(cmp.Or(most, limit/5*2), limit/5*2)
	}
	return most, nil
}

// createLargest creates a stream with the largest bound that the server has space for: the
// bound of c, then a quarter less each time, down to least. change, if any, sets the fields that depend on the bound.
func createLargest(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig, least int64, change func(*jetstream.StreamConfig)) (jetstream.Stream, error) {
	least = min(least, c.MaxBytes)
	for size := c.MaxBytes; ; size = max(size/4*3, least) {
		sized := c
		if sized.MaxBytes = size; change != nil {
			change(&sized)
		}
		s, err := create(ctx, js, sized, sizeTries)
		if size <= least || !jsapi.NoRoom(err) {
			return s, err
		}
	}
}

// create creates a stream, or returns the one that another worker has created,
// with any settings.
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

// lookUp returns a stream, or nil if there is none.
func lookUp(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return s, jsapi.Wrap(err, "look up %s", name)
}

// refuseBelowUse refuses a bound below the present size of a stream: the stream would refuse every message.
func refuseBelowUse(s jetstream.Stream, maxBytes int64) error {
	if i := s.CachedInfo(); maxBytes > 0 && uint64(maxBytes) < i.State.Bytes {
		return fmt.Errorf("bound %s: it holds %s, more than %s, and would refuse every message; shorten its age first, or allow more",
			i.Config.Name, humanize.IBytes(i.State.Bytes), humanize.IBytes(uint64(max(maxBytes, 0))))
	}
	return nil
}
