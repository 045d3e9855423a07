package model

import (
	"fmt"
	"time"
)

// Kind is the kind of a failure, by the caller's remedy.
type Kind string

// The kinds of failure.
const (
	TooLong     Kind = "too_long"     // the prompt does not fit the model: send less
	RateLimited Kind = "rate_limited" // the provider, or our own limit, wants fewer calls
	Unavailable Kind = "unavailable"  // no connection, or the provider has a fault
	Timeout     Kind = "timeout"      // no whole answer in time
	Refused     Kind = "refused"      // the prompt was declined before a model answered
	Auth        Kind = "auth"         // the key, or its permissions
	Invalid     Kind = "invalid"      // the provider does not understand the request: an unknown model, a wrong field
	BadAnswer   Kind = "bad_answer"   // cut, oversized or foreign; a redirect too
	CircuitOpen Kind = "circuit_open" // not called: it has failed too often of late
	OverQuota   Kind = "over_quota"   // not called: the tenant has used up its share
)

// Error is a provider's refusal or failure; [errors.As] finds it.
type Error struct {
	Kind Kind
	// Status is the HTTP status, 0 when there was none.
	Status int
	// RetryAfter is the pause that the provider requests, 0 without one.
	RetryAfter time.Duration
	// Err is the cause. Keys are removed from its text; it is nil when Kind is enough.
	Err error
}

func (e *Error) Error() string {
	s := "model " + string(e.Kind)
	if e.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
