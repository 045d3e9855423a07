package measure

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Tokens is a number of tokens, estimated or counted.
type Tokens int64

// Million is 1 as a [PPM].
const Million = 1_000_000

// CeilDiv is a / b rounded up, for a ≥ 0 and b > 0.
func CeilDiv(a, b int64) int64 { return (a + b - 1) / b }

// FloorDiv is a / b rounded down, also for a < 0; b > 0.
func FloorDiv(a, b Tokens) Tokens {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// Scaled is n reduced in the proportion of size to below, rounded down, if size is less than below.
func Scaled(n, size, below Tokens) Tokens {
	if size >= below {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(max(size, 0)))
	q, _ := bits.Div64(hi, lo, uint64(below))
	return Tokens(q)
}

// Reaches reports whether total is at or above a share of available.
func Reaches(total, available Tokens, share PPM) bool {
	return int64(total)*Million >= int64(available)*int64(share)
}

// PPM is a share in parts per million. In JSON it is a decimal number, 0.8 for
// 800,000; more than six decimals are an error.
type PPM int64

// Share returns ppm parts per million of n, rounded down.
func (p PPM) Share(n Tokens) Tokens { return Tokens(int64(n) * int64(p) / Million) }

// Ceil returns ppm parts per million of n, rounded up.
func (p PPM) Ceil(n Tokens) Tokens { return Tokens(CeilDiv(int64(n)*int64(p), Million)) }

// MarshalJSON writes a decimal.
func (p PPM) MarshalJSON() ([]byte, error) {
	s := fmt.Sprintf("%d.%06d", p/Million, p%Million)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".")), nil
}

// UnmarshalJSON reads a decimal between 0 and 1,000 exactly.
func (p *PPM) UnmarshalJSON(data []byte) error {
	whole, frac, _ := strings.Cut(string(data), ".")
	if len(whole) == 0 || len(whole) > 3 || len(frac) > 6 {
		return errors.New("must be a decimal of at most six places, such as 0.8")
	}
	var n int64
	for _, c := range whole + frac + strings.Repeat("0", 6-len(frac)) {
		if c < '0' || c > '9' {
			return errors.New("must be a decimal of at most six places, such as 0.8")
		}
		n = n*10 + int64(c-'0')
	}
	*p = PPM(n)
	return nil
}

// Prompt has the estimated tokens of a call's parts.
type Prompt struct {
	System, History, Current, Tools, Files Tokens

	// Correction is the addition by the provider's count.
	Correction Tokens
	// Fixed is the part of these that no compaction reduces.
	Fixed Tokens
}

// Total is the estimated input of the call.
func (p Prompt) Total() Tokens {
	return p.System + p.History + p.Current + p.Tools + p.Files + p.Correction
}
