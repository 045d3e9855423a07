package coord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
)

// Policies is the bucket of the policies that operators set for tenants, one key for each tenant. Keys do
// not expire. The bucket keeps the last revisions of each.
type Policies struct{ bucket bucket }

// NewPolicies returns the policies.
func NewPolicies(js jetstream.JetStream) *Policies {
	return &Policies{bucket{js: js, name: topology.PoliciesBucket}}
}

// PolicyRevision is one revision of a policy. Without a text it is a removal.
type PolicyRevision struct {
	Text []byte
	Time time.Time
}

// PolicyHash returns the hash of a text: 16 hexadecimal digits.
func PolicyHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Save sets the policy of a tenant; nil removes it.
func (p *Policies) Save(ctx context.Context, tenant string, text []byte) error {
	h := nats.Header{}
	if text == nil {
		h.Set(headerOperation, "DEL")
	}
	_, err := p.bucket.write(ctx, tenant, text, nil, h)
	return jsapi.Wrap(err, "write policy of %s", tenant)
}

// History returns the revisions of a tenant, the oldest first.
func (p *Policies) History(ctx context.Context, tenant string) (out []PolicyRevision, err error) {
	name := topology.StreamOf(p.bucket.name)
	err = stream.ReadSubject(ctx, p.bucket.js.Conn(), name, p.bucket.prefix()+tenant, 1, func(m stream.LogMessage) error {
		out = append(out, PolicyRevision{m.Data, m.Time})
		return nil
	})
	return out, jsapi.Wrap(err, "read policies of %s", tenant)
}

// Watch calls fn with the policy of each tenant and returns. Then it calls fn with every change, one at a time,
// until stop; a nil text is a removed policy. ctx limits only the start. After a call of onError changes
// may be missing: watch again.
func (p *Policies) Watch(ctx context.Context, fn func(tenant string, text []byte), onError func(error)) (stop func(), err error) {
	return p.bucket.watch(ctx, func(e entry) { fn(e.key, e.value) }, onError)
}
