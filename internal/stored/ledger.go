package stored

import (
	"errors"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// rowHeader is the name of the row that holds the header.
const rowHeader = "h"

var errHeader = errors.New("the rows of a ledger have no header")

// Rows returns the rows of a ledger that changed since they were stored last: the header,
// and those that the ledger makes.
func Rows(l *compaction.Ledger) ([]compaction.Row, error) {
	h, err := codec.Marshal(l.Header())
	if err != nil {
		return nil, fmt.Errorf("store ledger: %w", err)
	}
	return append([]compaction.Row{{Name: rowHeader, Data: h}}, l.Rows()...), nil
}

// ReadLedger makes a ledger of its rows, in any order.
func ReadLedger(a events.Address, rows []compaction.Row) (*compaction.Ledger, error) {
	h, err := header[compaction.Header](rows)
	if err != nil {
		return nil, fmt.Errorf("restore ledger: %w", err)
	}
	return compaction.Restore(a, h, rows)
}

// LastTurnAt returns when the last turn entered the ledger of some rows, in Unix
// milliseconds of the log.
func LastTurnAt(rows []compaction.Row) (int64, error) {
	h, err := header[struct {
		LastTurnAt int64 `json:"last_turn_ms"`
	}](rows)
	if err != nil {
		return 0, err
	}
	return h.LastTurnAt, nil
}

// IdleHandled reports whether the ledger of some rows needs no session.idle until its next
// turn.
func IdleHandled(rows []compaction.Row) (bool, error) {
	h, err := header[struct {
		IdleHandled bool `json:"idle_handled"`
	}](rows)
	if err != nil {
		return false, err
	}
	return h.IdleHandled, nil
}

// header reads the header of some rows, or the fields of it that T has. If rows of one
// name are given twice the last counts, as it does for every row.
func header[T any](rows []compaction.Row) (*T, error) {
	for _, r := range slices.Backward(rows) {
		if r.Name == rowHeader {
			h := new(T)
			if err := codec.Unmarshal(r.Data, h); err != nil {
				return nil, fmt.Errorf("header: %w", err)
			}
			return h, nil
		}
	}
	return nil, errHeader
}
