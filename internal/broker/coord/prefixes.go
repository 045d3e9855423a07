package coord

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

const (
	// PrefixTTL is the time after its last request during which a session is found by its history.
	PrefixTTL = 14 * 24 * time.Hour
	// usageTTL is the time that usage is kept for the next request of its session.
	usageTTL = time.Hour
	// maxPrefixes limits the digests of one look-up. The server's limit is 1,024.
	maxPrefixes = 512
)

// Prefixes is the bucket of sessions without a name: one key of a tenant for each digest of a
// prefix of a session's history. It also keeps the usage that a provider counted until the
// session's next request.
type Prefixes struct{ bucket, usage bucket }

// NewPrefixes returns the prefixes.
func NewPrefixes(js jetstream.JetStream) *Prefixes {
	return &Prefixes{newBucket(js, topology.PrefixesBucket, PrefixTTL), newBucket(js, topology.PrefixesBucket, usageTTL)}
}

// Prefix is the session of a digest.
type Prefix struct {
	Session string
	Written time.Time
}

// Find returns the sessions of a tenant that have one of the digests. Beyond maxPrefixes digests it
// looks up the first and the last of them.
func (p *Prefixes) Find(ctx context.Context, tenant string, digests []events.Digest) (map[events.Digest]Prefix, error) {
	if len(digests) == 0 {
		return nil, nil
	}
	if len(digests) > maxPrefixes {
		digests = append(digests[:maxPrefixes/2:maxPrefixes/2], digests[len(digests)-maxPrefixes/2:]...)
	}
	keys := make([]string, len(digests))
	for i, d := range digests {
		keys[i] = prefixKey(tenant, d)
	}
	out := map[events.Digest]Prefix{}
	err := p.bucket.getMany(ctx, keys, func(key string, value []byte, written time.Time) {
		_, text, _ := strings.Cut(key, ".")
		if d, err := events.ParseDigest(text); err == nil {
			out[d] = Prefix{string(value), written}
		}
	})
	return out, jsapi.Wrap(err, "look up prefixes of %s", tenant)
}

// Save stores the session of a digest for [PrefixTTL].
func (p *Prefixes) Save(ctx context.Context, tenant string, d events.Digest, session string) error {
	_, err := p.bucket.put(ctx, prefixKey(tenant, d), []byte(session), nil)
	return jsapi.Wrap(err, "write prefix of %s", tenant)
}

func prefixKey(tenant string, d events.Digest) string { return tenant + "." + d.String() }

// Usage returns the usage of a session, or nil.
func (p *Prefixes) Usage(ctx context.Context, a events.Address) ([]byte, error) {
	e, err := p.usage.get(ctx, usageKey(a))
	return e.value, jsapi.Wrap(err, "read usage of %s", a)
}

// SaveUsage stores the usage of a session.
func (p *Prefixes) SaveUsage(ctx context.Context, a events.Address, value []byte) error {
	_, err := p.usage.put(ctx, usageKey(a), value, nil)
	return jsapi.Wrap(err, "write usage of %s", a)
}

// DropUsage removes the usage of a session.
func (p *Prefixes) DropUsage(ctx context.Context, a events.Address) error {
	return jsapi.Wrap(p.usage.remove(ctx, usageKey(a), nil), "remove usage of %s", a)
}

func usageKey(a events.Address) string { return a.Tenant + ".usage-" + a.Session }

// getMany calls fn with each of the keys that exists. It reads from any copy of the bucket.
func (b *bucket) getMany(ctx context.Context, keys []string, fn func(key string, value []byte, written time.Time)) error {
	in := struct {
		Subjects []string `json:"multi_last"`
	}{make([]string, len(keys))}
	for i, k := range keys {
		in.Subjects[i] = b.prefix() + k
	}
	body, err := codec.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	nc := b.js.Conn()
	sub, err := nc.SubscribeSync(nc.NewRespInbox())
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := nc.PublishRequest("$JS.API.DIRECT.GET."+topology.StreamOf(b.name), sub.Subject, body); err != nil {
		return err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404": // end of the answer; no key exists
			return nil
		default:
			return fmt.Errorf("status %s %s", status, m.Header.Get("Description"))
		}
		subject := m.Header.Get(jetstream.SubjectHeader)
		e := newEntry(strings.TrimPrefix(subject, b.prefix()), m.Data, jsapi.ParseSeq(m.Header.Get(jetstream.SequenceHeader)), m.Header)
		written, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
		if err != nil {
			return fmt.Errorf("time of key %s: %w", strconv.Quote(e.key), err)
		}
		if e.value != nil {
			fn(e.key, e.value, written)
		}
	}
}
