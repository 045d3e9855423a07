package model

import (
	"context"
	"errors"
	"strings"
)

// fallback asks one model after the other.
type fallback []Model

// Fallback returns a model that asks the first of models, and the next when that
// fails, whatever the failure: what is too long, refused or unknown for one may
// not be so for another. Its error joins those of all, the first one's first, so
// that [errors.As] finds what the preferred model said. Its limits are the
// smallest, so that a prompt fits all of them. A reply goes back as it is,
// whatever its Finish. Without models Fallback is nil.
func Fallback(models ...Model) Model {
	switch len(models) {
	case 0:
		return nil
	case 1:
		return models[0]
	}
	return fallback(models)
}

// Name joins the names, in order.
func (f fallback) Name() string {
	var names []string
	for _, m := range f {
		names = append(names, m.Name())
	}
	return strings.Join(names, ",")
}

func (f fallback) Limits() Limits {
	l := f[0].Limits()
	for _, m := range f[1:] {
		next := m.Limits()
		l = Limits{Window: min(l.Window, next.Window), MaxOutput: min(l.MaxOutput, next.MaxOutput)}
	}
	return l
}

// Complete implements [Model].
func (f fallback) Complete(ctx context.Context, r Request) (Reply, error) {
	var errs []error
	for _, m := range f {
		reply, err := m.Complete(ctx, r)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return Reply{}, ctx.Err()
		}
		errs = append(errs, err)
	}
	return Reply{}, errors.Join(errs...)
}
