package commit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// ErrNoConfig: OUTCOMES holds no text for this hash.
var ErrNoConfig = errors.New("config is not stored")

// PutConfig stores the text of a config under its hash, unless the newest text
// there is the same and younger than renew. Texts expire like
// all messages of OUTCOMES, so the text in use is put again with the markers. The hash
// is 1 to 64 of [A-Za-z0-9_-]. Its subject differs from those of partitions, which
// have a number in its place.
func PutConfig(ctx context.Context, js jetstream.JetStream, hash string, text []byte, renew time.Duration) error {
	old, err := newestConfig(ctx, js, hash)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("put config: %w", err)
	}
	if err == nil && bytes.Equal(old.Data, text) && time.Since(old.Time) < renew {
		return nil
	}
	_, err = js.Publish(ctx, events.Config(hash), text)
	return jsapi.Wrap(err, "put config %s", hash)
}

// GetConfig passes the texts that are stored under the hash of a config to read, the newest first,
// until read accepts one: without accounts, any client may have stored another text there. It returns
// the first error of read if read accepts no text, and [ErrNoConfig] if no text is stored.
func GetConfig(ctx context.Context, js jetstream.JetStream, hash string, read func(text []byte) error) error {
	m, err := newestConfig(ctx, js, hash)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("get config %s: %w", hash, ErrNoConfig)
	}
	if err != nil {
		return fmt.Errorf("get config: %w", err)
	}
	refused := read(m.Data)
	if refused == nil {
		return nil
	}
	err = stream.ReadSubject(ctx, js.Conn(), topology.OutcomesStream, events.Config(hash), 1, func(m stream.LogMessage) error {
		if read(m.Data) == nil {
			refused = nil
			return stream.ErrEnd
		}
		return nil
	})
	return cmp.Or(err, refused)
}

func newestConfig(ctx context.Context, js jetstream.JetStream, hash string) (*jsapi.StoredMsg, error) {
	if !events.ValidID(hash) { // a dot would make its subject that of an outcome, which is republished
		return nil, fmt.Errorf("hash %q is not 1 to 64 of A-Z a-z 0-9 _ -", hash)
	}
	return jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: events.Config(hash)})
}
