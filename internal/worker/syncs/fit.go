package syncs

import (
	"context"

	"compactd/internal/events"
)

// fit answers a history that cannot be recorded.
func (x *request) fit(_ context.Context, st *state) (*events.SyncResponse, error) {
	x.warn(events.CodeUnstableHistory, "")
	return x.native(st, nil), nil
}
