package trace_test

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/trace"
)

// Without a provider a trace is passed on as it came.
func TestPassedOn(t *testing.T) {
	for _, parent := range []events.Trace{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"} {
		ctx, end := trace.Start(trace.With(t.Context(), parent), "step", events.Address{Tenant: "t", Session: "s"})
		headers := map[string][]string{}
		trace.Set(ctx, headers)
		end(nil)
		if got := events.ReadTrace(headers[events.HeaderTrace]); got != parent || trace.Of(ctx) != parent {
			t.Errorf("%q: %q, header %q", parent, trace.Of(ctx), got)
		}
	}
}
