package coord

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
)

// shareTTL is the time that an unused share is kept: longer than any debt.
const shareTTL = 8 * 24 * time.Hour

// Shares is the bucket of the tenants' use of models, one key for each tenant. The caller defines the
// format of a value.
type Shares struct{ bucket bucket }

// NewShares returns the shares.
func NewShares(js jetstream.JetStream) *Shares {
	return &Shares{newBucket(js, topology.SharesBucket, shareTTL)}
}

// Load returns the value of a tenant, or nil, and its revision.
func (s *Shares) Load(ctx context.Context, tenant string) (value []byte, revision uint64, err error) {
	e, err := s.bucket.get(ctx, tenant)
	return e.value, e.revision, jsapi.Wrap(err, "read share of %s", tenant)
}

// Save writes the value of a tenant if its revision is still after (0: no value). It returns false
// if another worker has written since. After an error the value may or may not be written.
func (s *Shares) Save(ctx context.Context, tenant string, value []byte, after uint64) (saved bool, err error) {
	_, err = s.bucket.put(ctx, tenant, value, &after)
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, jsapi.Wrap(err, "write share of %s", tenant)
}
