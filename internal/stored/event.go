package stored

import (
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/overflow"
)

// ReadTurn decodes the payload of a turn for the session it belongs to, and measures it
// with the counter of the config. It is for callers that need the texts too: a worker
// decodes with an [events.Decoder] that it keeps, and reads texts when it renders.
func ReadTurn(c *compaction.Config, l *compaction.Ledger, data []byte, seq measure.Seq) (*compaction.Turn, []dialect.Message, error) {
	in, err := new(events.Decoder).Turn(data, l.Format())
	if err != nil {
		return nil, nil, err
	}
	turn, err := events.DecodeTurn(data)
	if err != nil {
		return nil, nil, err
	}
	msgs, err := in.Dialect.ReadAll(turn.Messages)
	return c.Turn(l, in, seq), msgs, err
}

// ReadResult reads the payload of a session.summary, and returns its message too.
func ReadResult(data []byte, seq measure.Seq) (*compaction.Result, []dialect.Message, error) {
	s, err := events.DecodeSummary(data)
	if err != nil {
		return nil, nil, err
	}
	return compaction.NewResult(s, seq), s.Messages(), nil
}

// ReadRequest reads the payload of an event that requests something of a session: of
// every kind that is acted on but session.turn and session.summary.
func ReadRequest(k events.Kind, data []byte, seq measure.Seq) (*compaction.Request, error) {
	switch k {
	case events.KindCompact:
		return request(data, seq, events.Decode[events.Compact], compaction.NewCompact)
	case events.KindRewind:
		return request(data, seq, events.Decode[events.Rewind], compaction.NewRewind)
	case events.KindIdle:
		return request(data, seq, events.Decode[events.Idle], compaction.NewIdle)
	case events.KindBranch:
		return request(data, seq, events.Decode[events.Branch], compaction.NewBranch)
	case events.KindEnd:
		return request(data, seq, events.Decode[events.End], compaction.NewEnd)
	case events.KindForget:
		return request(data, seq, events.Decode[events.Erasure], compaction.NewForget)
	case events.KindOverflow:
		return overflow.Read(data, seq)
	default:
		return nil, events.NewInvalid(events.CodeUnsupportedKind, "kind", "is not acted on by this version")
	}
}

// request makes the request of a payload.
func request[T any](
	data []byte, seq measure.Seq, decode func([]byte) (T, error), request func(T, measure.Seq) *compaction.Request,
) (*compaction.Request, error) {
	body, err := decode(data)
	if err != nil {
		return nil, err
	}
	return request(body, seq), nil
}
