package outcomelog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction"
)

// ConfigResolver reads earlier configs by their hash. A replay needs them: an event changes its ledger
// depending on the config of its decision, and another config would lead to another
// ledger.
type ConfigResolver struct {
	js         jetstream.JetStream
	parse      func([]byte) (*compaction.Config, error)
	resolved   map[string]*compaction.Config
	unresolved map[string]error
}

// NewConfigResolver returns a resolver that reads the text of a config with parse.
func NewConfigResolver(js jetstream.JetStream, parse func([]byte) (*compaction.Config, error)) *ConfigResolver {
	return &ConfigResolver{js, parse, map[string]*compaction.Config{}, map[string]error{}}
}

// UnknownConfigError reports a config that is no longer stored or that this version cannot use.
type UnknownConfigError struct {
	hash string
	err  error
}

func (e *UnknownConfigError) Error() string { return fmt.Sprintf("config %s: %v", e.hash, e.err) }

func (e *UnknownConfigError) Unwrap() error { return e.err }

// Get returns a config, or an [*UnknownConfigError].
func (c *ConfigResolver) Get(ctx context.Context, hash string) (*compaction.Config, error) {
	if found, ok := c.resolved[hash]; ok {
		return found, nil
	}
	if err, ok := c.unresolved[hash]; ok {
		return nil, err
	}
	var refused error
	err := commit.GetConfig(ctx, c.js, hash, func(text []byte) error {
		found, err := c.parse(text)
		if err == nil && found.Hash() != hash {
			err = fmt.Errorf("a text with the hash %s is stored under it", found.Hash())
		}
		if err == nil {
			c.resolved[hash] = found
		}
		refused = err
		return err
	})
	if found, ok := c.resolved[hash]; ok {
		return found, nil
	}
	if err != nil && refused == nil && !errors.Is(err, commit.ErrNoConfig) {
		return nil, err
	}
	c.unresolved[hash] = &UnknownConfigError{hash, err}
	return nil, c.unresolved[hash]
}

// GetOr returns a config, or present if hash is "" or its hash. It replaces an unknown config by
// present, and calls report once for each: recorded outcomes stay the same, but estimates of open
// sessions may differ.
func (c *ConfigResolver) GetOr(ctx context.Context, hash string, present *compaction.Config, report func(error)) (*compaction.Config, error) {
	if hash == "" || hash == present.Hash() {
		return present, nil
	}
	found, err := c.Get(ctx, hash)
	if unknown, ok := errors.AsType[*UnknownConfigError](err); ok {
		report(fmt.Errorf("events are applied under the present config: %w", unknown))
		c.resolved[hash] = present
		return present, nil
	}
	return found, err
}
