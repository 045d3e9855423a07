package replay

import (
	"math"
	"math/rand/v2"
)

// Shape is a log-normal distribution that is cut at a limit: what agents do has a
// long tail, and two quantiles say all of it.
type Shape struct {
	P50, P99 float64
	Limit    float64 // beyond the quantile 0.999, so that it moves neither of the two
}

// Measured over 2,000 messages of recorded coding sessions.
var (
	Gaps  = Shape{P50: 1.65, P99: 131, Limit: 600}           // before a message, in seconds
	Sizes = Shape{P50: 638, P99: 21_000, Limit: 256 * 1_024} // of a message, in bytes
)

// z99 is the quantile 0.99 of the standard normal distribution.
const z99 = 2.326348

// Draw returns a value, more than 0 and at most the limit.
func (s Shape) Draw(r *rand.Rand) float64 {
	sigma := math.Log(s.P99/s.P50) / z99
	return min(s.P50*math.Exp(sigma*r.NormFloat64()), s.Limit)
}
