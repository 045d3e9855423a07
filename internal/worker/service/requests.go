package service

import (
	"context"
	"fmt"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Requests of this process. The worker that serves the session answers them. Errors are [*events.ServiceError].

// Context answers with a history.
func (s *Service) Context(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	return received[events.ContextResponse](ask(ctx, s, "context", in, (*Service).context))
}

// Files answers with the files that a session has read and changed.
func (s *Service) Files(ctx context.Context, in *events.FilesRequest) (*events.FilesResponse, error) {
	return received[events.FilesResponse](ask(ctx, s, "files", in, (*Service).files))
}

// Outcome returns the result of an event.
func (s *Service) Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	return received[events.OutcomeResponse](ask(ctx, s, "outcome", in, (*Service).outcome))
}

// Recall answers with originals.
func (s *Service) Recall(ctx context.Context, in *events.RecallRequest) (*events.RecallResponse, error) {
	return received[events.RecallResponse](ask(ctx, s, "recall", in, (*Service).recall))
}

// Search is Recall for a request with a text.
func (s *Service) Search(ctx context.Context, in *events.RecallRequest) (*events.SearchResponse, error) {
	return received[events.SearchResponse](ask(ctx, s, "recall", in, (*Service).recall))
}

// Stats answers with the state of a session.
func (s *Service) Stats(ctx context.Context, in *events.StatsRequest) (*events.StatsResponse, error) {
	return received[events.StatsResponse](ask(ctx, s, "stats", in, (*Service).stats))
}

// Sync returns the history to send.
func (s *Service) Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	return received[events.SyncResponse](ask(ctx, s, "sync", in, (*Service).sync))
}

// ask checks a request like its decoder, and answers it.
func ask[Q, A any, P addressed[Q]](ctx context.Context, s *Service, name string, in *Q, answer func(*Service, context.Context, *Q) (A, error)) (any, error) {
	whole := *in
	err := events.Check(P(&whole))
	if err == nil {
		_, err = s.Serving()
	}
	var out any
	if err == nil {
		out, err = s.serve(ctx, s.find(name), callOf[Q, A, P](s, &whole, answer), false)
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	return out, nil
}

// received returns an answer of this worker as it is, and decodes an answer of another worker.
func received[A any](out any, err error) (*A, error) {
	if err != nil {
		return nil, err
	}
	switch out := out.(type) {
	case *A:
		return out, nil
	case codec.Raw:
		a := new(A)
		if err := codec.Unmarshal(out, a); err != nil {
			return nil, fmt.Errorf("read the answer of another worker: %w", err)
		}
		return a, nil
	}
	return nil, fmt.Errorf("an answer is a %T", out)
}

// sync takes the history of an agent, and returns the history to send.
func (s *Service) sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := s.syncer.Answer(ctx, in)
	return out, orEnded(ctx, err)
}
