package stored

import (
	"fmt"

	"compactd/internal/compaction"
	"compactd/internal/events/codec"
	"compactd/internal/events/weigh"
)

// ReadConfig reads the text of a stored config, which may name one of the given counters.
// See [compaction.ConfigOf] for what it refuses.
func ReadConfig(text []byte, counters ...weigh.Counter) (*compaction.Config, error) {
	var t compaction.ConfigText
	if err := codec.UnmarshalStrict(text, &t); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	return compaction.ConfigOf(&t, counters...)
}

// ConfigReader is [ReadConfig] for texts that may name the given counters.
func ConfigReader(counters ...weigh.Counter) func(text []byte) (*compaction.Config, error) {
	return func(text []byte) (*compaction.Config, error) { return ReadConfig(text, counters...) }
}
