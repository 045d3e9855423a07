package service_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// A request for a turn that does not come reads the large turns that were refused, each with a processor of the limiter.
func TestRefusedTurnsCompute(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	var computed atomic.Int64
	env.Limiter = limit.New(limit.Config{OnChange: func(c limit.Class, held int64) {
		if c == limit.Processor && held > 0 {
			computed.Add(1)
		}
	}})
	env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s", workertest.Turn(1))
	const refused = 3
	for range refused {
		env.Publish(events.KindTurn, "s", fmt.Appendf(nil, `{"turn":2,"messages":[{"role":"tool","content":%q}]}`, strings.Repeat("x", 2*limit.Large)))
	}
	env.AwaitDecided()
	before := computed.Load()
	if e := env.Request(events.SubjectContext, `{"session":"s","turn":999,"wait_ms":1}`, nil); e == nil || e.Code != events.CodeTurnPending {
		t.Errorf("%v", e)
	}
	if n := computed.Load() - before; n < refused {
		t.Errorf("%d times a processor for %d turns", n, refused)
	}
}
