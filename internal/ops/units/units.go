package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes is a size such as 1.2 MiB; what is below 0 counts as 0.
func Bytes[T ~int | ~int64 | ~uint64](n T) string { return humanize.IBytes(uint64(max(n, 0))) }

// Count is a number of things, such as 1 session or 2 sessions.
func Count[T ~int | ~int64](n T, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Dollars is an amount in billionths of a US dollar, such as $1.20, with more places below one.
func Dollars[T ~int64](n T) string {
	if d := float64(n) / 1e9; d >= 1 || d <= -1 {
		return fmt.Sprintf("$%.2f", d)
	}
	return fmt.Sprintf("$%.4f", float64(n)/1e9)
}

// PricedBy formats amounts of work of which so many parts have no known price: an amount of the
// other parts is the least that it can be.
func PricedBy(unpriced int64) func(n int64) string {
	return func(n int64) string {
		switch {
		case unpriced == 0:
			return Dollars(n)
		case n == 0:
			return "unknown"
		default:
			return "at least " + Dollars(n)
		}
	}
}

// List is names with commas between them.
func List[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

const day = 24 * time.Hour

// Period is a time on a command line: 30d, 1d12h, or as Go writes it.
type Period time.Duration

// UnmarshalText reads one.
func (p *Period) UnmarshalText(text []byte) error {
	days, rest, found := strings.Cut(string(text), "d")
	if !found {
		days, rest = "0", days
	}
	n, err := strconv.Atoi(days)
	var of time.Duration
	if rest != "" && err == nil {
		of, err = time.ParseDuration(rest)
	}
	if err != nil || n < 0 || n > maxDays || rest == "" && !found {
		return fmt.Errorf("%q is no time such as 30d, 12h or 90m", text)
	}
	*p = Period(time.Duration(n)*day + of)
	return nil
}

// maxDays is a century, far below what a duration holds.
const maxDays = 36_500

// Span is a time such as 30d, 1h30m, 12s or 40ms. It has two units, and the rest is
// rounded down.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-d)
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprint(d.Truncate(100 * time.Millisecond))
	case d < time.Hour:
		return pair(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return pair(d, time.Hour, "h", time.Minute, "m")
	default:
		return pair(d, day, "d", time.Hour, "h")
	}
}

func pair(d, large time.Duration, l string, small time.Duration, s string) string {
	out := fmt.Sprint(int64(d/large)) + l
	if rest := d % large / small; rest > 0 {
		out += fmt.Sprint(int64(rest)) + s
	}
	return out
}
