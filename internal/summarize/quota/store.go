package quota

import "context"

// Store keeps the used share of each tenant, for all workers of a fleet.
type Store interface {
	// Load returns the value of a tenant, nil for none, and its revision.
	Load(ctx context.Context, tenant string) (value []byte, revision uint64, err error)
	// Save writes the value of a tenant if its revision is still after. It is false if another worker has
	// written since.
	Save(ctx context.Context, tenant string, value []byte, after uint64) (saved bool, err error)
}
