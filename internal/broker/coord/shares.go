package coord

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
)

// shareTTL is how long a share is kept that nothing is taken from: longer than any debt.
const shareTTL = 8 * 24 * time.Hour

// Shares is the bucket of what tenants have used of models, one key for each tenant. A value is
// for its writer to read.
type Shares struct{ bucket bucket }

// NewShares returns the shares.
func NewShares(js jetstream.JetStream) *Shares {
	return &Shares{newBucket(js, topology.SharesBucket, shareTTL)}
}

// Load returns the value of a tenant, nil for none, and its revision.
func (s *Shares) Load(ctx context.Context, tenant string) (value []byte, revision uint64, err error) {
	e, err := s.bucket.get(ctx, tenant)
	return e.value, e.revision, jsapi.Wrap(err, "read share of %s", tenant)
}

// Save writes the value of a tenant whose revision is still after, 0 for none. It is false
// where another worker has written since. After an error it may be written, or not.
func (s *Shares) Save(ctx context.Context, tenant string, value []byte, after uint64) (saved bool, err error) {
	_, err = s.bucket.put(ctx, tenant, value, &after)
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, jsapi.Wrap(err, "write share of %s", tenant)
}
