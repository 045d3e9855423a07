package quota

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"compactd/internal/events/codec"
)

// used has the times at which a tenant has its whole shares of calls and of tokens again, in Unix
// nanoseconds. It stays valid under other limits.
type used struct {
	Calls  int64 `json:"calls"`
	Tokens int64 `json:"tokens"`
}

// longestDebt bounds how far ahead a share may be used up: older values are useless.
const longestDebt = 7 * 24 * time.Hour

func readUsed(value []byte) (u used, err error) {
	if value == nil {
		return u, nil
	}
	if err := codec.Unmarshal(value, &u); err != nil {
		return u, fmt.Errorf("read share: %w", err)
	}
	return u, nil
}

// owes reports whether no token is left.
func (u *used) owes(now int64, l Limits) bool {
	return l.TokensPerHour > 0 && u.Tokens-now >= int64(time.Hour)
}

// call takes a call, and is false where none is left.
func (u *used) call(now int64, l Limits) bool {
	if l.CallsPerMinute <= 0 {
		return true
	}
	at := max(u.Calls, now) + int64(time.Minute)/int64(l.CallsPerMinute)
	if at-now > int64(time.Minute) {
		return false
	}
	u.Calls = at
	return true
}

// charge takes tokens, and owes those that are not there.
func (u *used) charge(now, tokens int64, l Limits) {
	if l.TokensPerHour <= 0 || tokens <= 0 {
		return
	}
	takes := int64(math.MaxInt64)
	if high, low := bits.Mul64(uint64(tokens), uint64(time.Hour)); high < uint64(l.TokensPerHour) {
		n, _ := bits.Div64(high, low, uint64(l.TokensPerHour))
		takes = int64(min(n, math.MaxInt64))
	}
	u.Tokens = max(u.Tokens, now) - now
	u.Tokens = now + min(u.Tokens+min(takes, int64(longestDebt)), int64(longestDebt))
}
