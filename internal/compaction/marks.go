package compaction

// What sets the trigger.
const (
	byRatio  = "ratio"
	byTokens = "tokens"
	byBuffer = "buffer"
)

// The figures of trigger buffer, in tokens. They hold for windows of bufferWindow
// tokens and more and shrink in proportion below, the reserve excepted.
const (
	bufferReserve  Tokens = 20_000 // most that is kept free for the answer
	bufferTrigger  Tokens = 13_000 // from the trigger to the end of the input
	bufferBlocking Tokens = 3_000  // from the hard limit to the end of the input
	bufferWindow   Tokens = 200_000
)

// marks are the places on the way to a full window, in tokens of the estimated
// input. An input has come to one when it is at or above it.
type marks struct {
	available Tokens // what the model can read
	limit     Tokens // the hard limit: truncation no longer waits
	trigger   Tokens
	prepare   Tokens
	info      Tokens
	target    Tokens // what compaction aims for
}

// reserve is the output reserve under the policy.
func (p *Policy) reserve(reserve Tokens) Tokens {
	if p.By == byBuffer {
		return min(reserve, bufferReserve)
	}
	return reserve
}

// marks returns the places for a window and its output reserve.
func (p *Policy) marks(window, reserve Tokens) marks {
	m := marks{available: window - reserve}
	of, in := m.available, PPM(million) // what shares are taken of
	m.limit = m.available
	switch p.By {
	case byTokens:
		of, in = min(p.TriggerTokens, m.available), p.Trigger
	case byBuffer:
		scaled := func(n Tokens) Tokens { return n * min(window, bufferWindow) / bufferWindow }
		of, in = max(m.available-scaled(bufferTrigger), 0), p.Trigger
		m.limit = max(m.available-scaled(bufferBlocking), 0)
	}
	up := func(share PPM) Tokens { return Tokens(ceilDiv(int64(of)*int64(share), int64(in))) }
	m.trigger, m.prepare, m.info = up(p.Trigger), up(p.Summarize.Prepare), up(p.Info)
	m.target = Tokens(int64(of) * int64(p.Target) / int64(in))
	return m
}
