package retry

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// An operation is called until it succeeds, fails for good, or its context ends; the pauses
// grow up to the last, and the error of each try is reported before its pause.
func TestDo(t *testing.T) {
	t.Parallel()
	passing, final := errors.New("it may pass"), errors.New("it never passes")
	for name, c := range map[string]struct {
		errs []error // of the tries; after the last one: success
		want error
	}{
		"at once":    {nil, nil},
		"third try":  {[]error{passing, passing}, nil},
		"final":      {[]error{passing, Final(final)}, final},
		"in a chain": {[]error{errors.Join(passing, Final(final))}, final},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries, reported := 0, 0
			err := Pauses{time.Second, time.Minute}.Do(t.Context(), func(error) { reported++ }, func() error {
				if tries++; tries <= len(c.errs) {
					return c.errs[tries-1]
				}
				return nil
			})
			if !errors.Is(err, c.want) || IsFinal(err) || reported != tries-1 {
				t.Errorf("%s: %v after %d tries, %d reported", name, err, tries, reported)
			}
		})
	}
}

// Pauses that are equal are exact; others grow, and differ from each other by chance.
func TestPauses(t *testing.T) {
	t.Parallel()
	pauses := func(t *testing.T, p Pauses) (out []time.Duration) {
		at := time.Now()
		_ = p.Until(t.Context(), func() (bool, error) {
			out = append(out, time.Since(at))
			at = time.Now()
			return len(out) == 8, nil
		})
		return out[1:]
	}
	synctest.Test(t, func(t *testing.T) {
		if got := pauses(t, Every(time.Second)); slices.ContainsFunc(got, func(d time.Duration) bool { return d != time.Second }) {
			t.Errorf("every second: %v", got)
		}
		got := pauses(t, Pauses{time.Second, 4 * time.Second})
		if got[0] > 1500*time.Millisecond || slices.Max(got) < 2*time.Second || slices.Max(got) > 6*time.Second {
			t.Errorf("1 to 4 s: %v", got)
		}
	})
}

// The end of the context ends a pause, and is the error.
func TestEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := Every(time.Hour).Do(ctx, nil, func() error { return errors.New("busy") })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
