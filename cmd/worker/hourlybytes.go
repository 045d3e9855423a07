package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// leastHourly is the smallest bound that --tenant-outcomes-per-hour takes: one of the
// largest outcomes.
const leastHourly = 8 << 20

// hourlyBytes bounds what a tenant may have stored in an hour; 0 is the default,
// negative no bound.
type hourlyBytes int64

// UnmarshalText reads a size, or off.
func (h *hourlyBytes) UnmarshalText(text []byte) error {
	switch s := strings.TrimSpace(string(text)); s {
	case "": // a variable that is set to nothing is one that is not set
	case "off":
		*h = -1
	default:
		n, err := humanize.ParseBytes(s)
		if err != nil || n < leastHourly || n > math.MaxInt64 {
			return fmt.Errorf("%q is neither off nor a size of 8MiB or more, such as 1GiB", s)
		}
		*h = hourlyBytes(n)
	}
	return nil
}
