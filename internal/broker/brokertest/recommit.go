package brokertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
)

// Recommit replaces the messages of OUTCOMES, in commits like those of workers: each commit of a
// partition ends with a message that has the header marker.
func Recommit(ctx context.Context, js jetstream.JetStream, marker string, messages []*nats.Msg) error {
	s, err := js.Stream(ctx, topology.OutcomesStream)
	if err != nil {
		return err
	}
	if err := js.DeleteStream(ctx, topology.OutcomesStream); err != nil {
		return err
	}
	if _, err := js.CreateStream(ctx, s.CachedInfo().Config); err != nil {
		return err
	}
	begun, last := map[string][]*nats.Msg{}, map[string]uint64{}
	for _, m := range messages {
		partition := strings.Split(m.Subject, ".")[1]
		out := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{}}
		if partition == "config" {
			if _, err := js.PublishMsg(ctx, out); err != nil {
				return err
			}
			continue
		}
		begun[partition] = append(begun[partition], out)
		if text := m.Header[marker]; len(text) > 0 {
			out.Header[marker] = text
			if last[partition], err = commitBatch(ctx, js, begun[partition], "out."+partition+".>", last[partition]); err != nil {
				return err
			}
			begun[partition] = nil
		}
	}
	return nil
}

// commitBatch stores messages as one batch with a fence, and returns the sequence of the last.
func commitBatch(ctx context.Context, js jetstream.JetStream, batch []*nats.Msg, filter string, fence uint64) (uint64, error) {
	batch[0].Header[jsapi.HeaderFence] = []string{strconv.FormatUint(fence, 10)}
	batch[0].Header[jsapi.HeaderFenceSubject] = []string{filter}
	end := batch[len(batch)-1]
	if len(batch) > 1 {
		id := nats.NewInbox()
		for i, m := range batch {
			m.Header[jsapi.HeaderBatchID], m.Header[jsapi.HeaderBatchSeq] = []string{id}, []string{strconv.Itoa(i + 1)}
		}
		end.Header[jsapi.HeaderBatchCommit] = []string{"1"}
	}
	for _, m := range batch[:len(batch)-1] {
		if err := js.Conn().PublishMsg(m); err != nil {
			return 0, err
		}
	}
	ack, err := js.PublishMsg(ctx, end)
	if err != nil {
		return 0, fmt.Errorf("commit %d messages of %s: %w", len(batch), filter, err)
	}
	return ack.Sequence, nil
}
