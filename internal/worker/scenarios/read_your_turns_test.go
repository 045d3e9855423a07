package scenarios_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
)

// shortTurn is a turn of a few tokens, which is decided quickly.
func shortTurn(n int) []byte {
	return fmt.Appendf(nil, `{"turn":%d,"messages":[{"role":"user","content":"question %d"},{"role":"assistant","content":"answer"}]}`, n, n)
}

// In a fleet of three, a request that names the last acknowledged turn, or the sequence of
// its acknowledgement, never gets a history without it, whichever worker answers.
func TestReadYourTurns(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	for _, name := range []string{"a", "b", "c"} {
		env.Run(name, owners.Listener(name))
	}
	owners.Until("four partitions", func() bool { return len(owners.Held["a"])+len(owners.Held["b"])+len(owners.Held["c"]) == 4 })
	const sessions, turns = 6, 50
	var wg sync.WaitGroup
	lacking := make([]int, sessions)
	for s := range sessions {
		wg.Go(func() {
			session := fmt.Sprintf("s%d", s)
			for n := 1; n <= turns; n++ {
				ack, err := env.JS.Publish(t.Context(), "session.turn.default."+session, shortTurn(n))
				if err != nil {
					t.Error(err)
					return
				}
				wait := fmt.Sprintf(`"turn":%d`, n)
				if n%2 == 0 {
					wait = fmt.Sprintf(`"seq":%d`, ack.Sequence)
				}
				for _, subject := range []string{events.SubjectContext, events.SubjectStats} {
					through, e := through(env, subject, fmt.Sprintf(`{"session":%q,%s}`, session, wait))
					if e != nil {
						t.Errorf("%s, turn %d: %v", session, n, e)
					} else if through.Turn < int64(n) {
						lacking[s]++
					}
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range lacking {
		total += n
	}
	t.Logf("%d of %d answers lacked a turn that was acknowledged", total, 2*sessions*turns)
	if total > 0 {
		t.Errorf("%d answers lacked an acknowledged turn", total)
	}
}

// through requests a history or figures, and returns the turn that they include last.
func through(env *workertest.Env, subject, request string) (events.Through, error) {
	m, err := env.Conn.Request(subject, []byte(request), workertest.WaitLimit)
	if err != nil {
		return events.Through{}, err
	}
	var out struct {
		Code    events.Code    `json:"code"`
		Message string         `json:"message"`
		Through events.Through `json:"through"`
	}
	if err := codec.Unmarshal(m.Data, &out); err != nil {
		return events.Through{}, err
	}
	if out.Code != "" {
		return events.Through{}, &events.ServiceError{Code: out.Code, Message: out.Message}
	}
	return out.Through, nil
}

// A refused or parked turn counts as decided: the answer comes at once, also from a worker
// that has taken the partition over since. For a turn that is not in the log the request
// waits until its time is over, or until the turn arrives, at whichever worker serves it then.
func TestAwaitTurns(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	stopA := env.Run("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
	const forever = `"wait_ms":8000`
	request := func(n int, wait string) (events.Through, error) {
		t.Helper()
		return through(env, events.SubjectContext, fmt.Sprintf(`{"session":"s","turn":%d,%s}`, n, wait))
	}
	code := func(err error) events.Code {
		e, _ := errors.AsType[*events.ServiceError](err)
		if e == nil {
			return ""
		}
		return e.Code
	}
	if _, err := request(1, `"wait_ms":1`); code(err) != events.CodeTurnPending {
		t.Errorf("a session that has no turns: %v", err)
	}
	env.Publish(events.KindTurn, "s", shortTurn(1))
	env.Publish(events.KindTurn, "s", []byte(`{"turn":2,"messages":[{"role":"tool","content":"x"}]}`)) // refused
	decided := func(who string) {
		t.Helper()
		for _, n := range []int{1, 2} {
			began := time.Now()
			if through, err := request(n, forever); err != nil || through.Turn != 1 {
				t.Errorf("%s: turn %d: through %+v, %v", who, n, through, err)
			}
			t.Logf("%s: turn %d after %s", who, n, time.Since(began))
		}
	}
	decided("the worker that refused it")
	env.Publish(events.KindTurn, "s", shortTurn(4)) // parked
	if through, err := request(4, forever); err != nil || through.Turn != 1 {
		t.Errorf("a parked turn: through %+v, %v", through, err)
	}
	if _, err := request(3, `"wait_ms":50`); code(err) != events.CodeTurnPending {
		t.Errorf("a turn that does not come: %v", err)
	}

	answers := make(chan error, 1) // requested from one worker, and answered after another took over
	go func() {
		through, err := request(5, forever)
		if err == nil && through.Turn != 5 {
			err = fmt.Errorf("through %+v", through)
		}
		answers <- err
	}()
	env.Run("b", owners.Listener("b"))
	owners.Until("both serve", func() bool { return len(owners.Held["a"]) == 2 && len(owners.Held["b"]) == 2 })
	stopA()
	owners.Await(map[string]int{"b": 4})
	decided("the worker that took over")
	for _, n := range []int{2, 3, 5} {
		env.Publish(events.KindTurn, "s", shortTurn(n))
	}
	if through, err := request(5, forever); err != nil || through.Turn != 5 {
		t.Errorf("turn 5: through %+v, %v", through, err)
	}
	select {
	case err := <-answers: // the worker that got the request may have stopped: then it refuses at once
		if err != nil && code(err) != events.CodeUnavailable {
			t.Errorf("requested before the take-over: %v", err)
		}
	case <-time.After(workertest.WaitLimit):
		t.Error("no answer")
	}
	if _, err := through(env, events.SubjectContext, `{"session":"s","turn":5,"wait_ms":8001}`); code(err) != events.CodeOutOfRange {
		t.Errorf("a wait that is too long: %v", err)
	}
}
