package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// Each step of a request waits at most AnswerTimeout, and is refused then: here a large event for its place among the
// undecided ones, and an answer for its outcomes.
func TestStepsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Config{})
		for i, free := 0, true; free; i++ {
			_, free = l.TryHold(limit.Undecided, limit.Account{Tenant: fmt.Sprint(i)}, 1)
		}
		ctx := l.Begin(limit.Account{Tenant: "acme"}).With(t.Context())
		for name, step := range map[string]func(s *Service) error{
			"event": func(s *Service) error {
				_, err := s.undecided(ctx, events.KindTurn, events.Address{}, limit.Large+1)
				return err
			},
			"answer": func(s *Service) error {
				_, err := s.run(ctx, &Operation{}, &call{answer: func(ctx context.Context) (any, error) {
					<-ctx.Done()
					return nil, whyEnded(ctx)
				}})
				return err
			},
		} {
			began := time.Now()
			if err := step(&Service{}); !errors.Is(err, ErrBusy) || time.Since(began) != AnswerTimeout {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
	})
}
