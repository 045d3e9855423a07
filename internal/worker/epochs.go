package worker

import (
	"context"
	"errors"
	"fmt"

	"compactd/internal/broker"
	"compactd/internal/compaction"
)

// reign says up to which event a config was in force.
type configEpoch struct {
	to   compaction.Seq
	hash string
}

// past brings back the configs that were in force before: what a ledger learns
// from usages and overflows depends on the config its event was decided under, so
// under any other it would not be the ledger of the worker that decided.
type replayConfigs struct {
	p        *partition
	resolved map[string]*compaction.Config
}

// config returns a config by its hash. One that is not to be had any more, or that
// this binary cannot read, is the present one: what was told stays as it is, and
// estimates of sessions that are still open may differ.
func (c *replayConfigs) config(ctx context.Context, hash string) (*compaction.Config, error) {
	present := c.p.w.config.Compaction
	if found, ok := c.resolved[hash]; ok {
		return found, nil
	}
	if hash == "" || hash == present.Hash() {
		return present, nil
	}
	text, err := broker.GetConfig(ctx, c.p.w.js, hash)
	if err != nil && !errors.Is(err, broker.ErrNoConfig) {
		return nil, err
	}
	found := present
	if err == nil {
		found, err = present.Parse(text)
	}
	if err != nil {
		found = present
		c.p.retrying("replay")(fmt.Errorf("events are applied under the present config, not %s: %w", hash, err))
	}
	c.resolved[hash] = found
	return found, nil
}
