package events

import "compactd/internal/events/dialect"

// Record returns a message as it is recorded: references stand in the place of media above
// [dialect.LargeMedia], and of smaller ones, the largest first, while it has more than most bytes.
// Its identity and its price stay. See docs/format/wire.md, "Media by hash".
func (f Format) Record(raw Raw, most int) Raw { return f.Dialect().Record(raw, most) }

// Sendable returns a message as a provider takes it: placeholders stand for media of which only
// the hash was kept.
func (f Format) Sendable(raw Raw) Raw { return f.Dialect().Sendable(raw) }

// Fold returns messages of at most most bytes together, as far as references in the place of
// media do that: those of the oldest messages first.
func (f Format) Fold(messages []Raw, most int) []Raw {
	size := 0
	for _, m := range messages {
		size += len(m) + 1
	}
	if size <= most {
		return messages
	}
	out := append([]Raw(nil), messages...)
	for i, m := range out {
		if size <= most {
			break
		}
		out[i] = f.Record(m, dialect.LeastMessage)
		size += len(out[i]) - len(m)
	}
	return out
}
