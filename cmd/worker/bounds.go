package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// leastMaxBytes is the smallest bound that --max-bytes takes: a few of the largest turns.
const leastMaxBytes = 64 << 20

// maxBytes bounds SESSIONS and OUTCOMES, in bytes; 0 leaves them as they are.
type maxBytes struct{ log, outcomes int64 }

// UnmarshalText reads one size for each of the two, or two with a comma between them.
func (m *maxBytes) UnmarshalText(text []byte) error {
	if len(text) == 0 { // a variable that is set to nothing is one that is not set
		return nil
	}
	log, outcomes, two := strings.Cut(string(text), ",")
	var err error
	if m.log, err = size(log); err != nil {
		return err
	}
	if m.outcomes = m.log; two {
		m.outcomes, err = size(outcomes)
	}
	return err
}

func size(text string) (int64, error) {
	n, err := humanize.ParseBytes(strings.TrimSpace(text))
	if err != nil || n < leastMaxBytes || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size of 64MiB or more, such as 20GiB or 150GB", strings.TrimSpace(text))
	}
	return int64(n), nil
}

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
