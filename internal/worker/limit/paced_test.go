package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/summarize/model"
)

// waiting is a model; its caller holds no processor.
type waiting struct {
	*Limiter
	t *testing.T
}

func (waiting) Name() string         { return "p/waiting" }
func (waiting) Limits() model.Limits { return model.Limits{} }

func (w waiting) Complete(ctx context.Context, _ model.Request) (model.Reply, error) {
	if held := w.Held(Processor); ctx.Err() != nil || held != 0 {
		w.t.Errorf("%d processors are held while a model answers, %v", held, ctx.Err())
	}
	return model.Reply{}, nil
}

// Work that only reads the state of its context lets others compute, and holds no processor while it waits, nor
// at its end.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		l.pools[Processor] = testPool(1, false, true)
		ctx, end := l.Paced(t.Context(), Account{"hostile", ""})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				if ctx.Err() != nil {
					t.Error("it ended")
				}
				time.Sleep(slice)
			}
		}()
		time.Sleep(10 * slice)
		began, o := time.Now(), l.Begin(Account{"other", ""})
		if err := o.Compute(t.Context()); err != nil || time.Since(began) > slice {
			t.Errorf("another one waits %s, %v", time.Since(began), err)
		}
		o.End()
		<-done
		_, _ = model.Complete(ctx, waiting{l, t}, model.Request{})
		if ctx.Err() != nil || l.Held(Processor) != 1 {
			t.Error("it does not go on")
		}
		if end(); l.Held(Processor) != 0 {
			t.Error("a processor is held at the end")
		}
	})
}
