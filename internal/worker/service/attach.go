package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// attach states which parts of files to send with the next call of a session (B15). It reads and
// summarizes files outside the lock of the partition, and stores none of them.
func (s *Service) attach(ctx context.Context, in *events.AttachRequest) (*events.AttachResponse, error) {
	next, err := s.pending(in.Address(), &in.NextCall)
	if err != nil {
		return nil, err
	}
	next = next.WithPolicy(in.Policy)
	var room compaction.FileRoom
	var bad error
	_, _, err = s.inspect(in.Address(), func(l *compaction.Ledger) { room, bad = l.FileRoom(s.config.Partitions.Compaction(), next) })
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	plan := s.config.Partitions.Compaction().PlanFiles(room, in.Attachments)
	by := summarize.Writer{Provider: room.Provider, Model: room.Model}
	if s.Compaction().For(in.Tenant).Limits.Private {
		by = summarize.NoModel
	}
	written, err := s.summarizeFiles(ctx, in, plan, by)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	plan.Fit()
	return s.attached(in, next, plan, written)
}

// pending measures a call in the dialect of its session.
func (s *Service) pending(a events.Address, call *events.NextCall) (compaction.Pending, error) {
	var format events.Format
	if _, _, err := s.inspect(a, func(l *compaction.Ledger) { format = l.Format() }); err != nil {
		return compaction.Pending{}, err
	}
	if format != "" && call.Format != "" && call.Format != format {
		return compaction.Pending{}, events.NewInvalid(events.CodeFormatChanged, "format", "is not "+string(format)+", that of the session")
	}
	model := call.RequestedModel()
	return s.config.Partitions.Compaction().ReadPending(call, cmp.Or(format, call.Format, events.DefaultFormat(&model)))
}

// attached returns the response for a plan, with the budget of the call that will send the files.
func (s *Service) attached(in *events.AttachRequest, next compaction.Pending, plan *measure.FilePlan, written []*summarize.FileSummary) (*events.AttachResponse, error) {
	out := &events.AttachResponse{V: events.Version, FileBudget: int64(plan.Budget), Attachments: make([]events.AttachedText, len(plan.Files))}
	var total measure.Tokens
	for i, f := range plan.Files {
		total += f.Tokens
		out.Attachments[i] = events.AttachedText{
			Name: in.Attachments[i].Name, Action: f.Action, Text: f.Text, Tokens: int64(f.Tokens), WholeTokens: int64(f.Whole),
		}
		if w := written[i]; w != nil {
			out.Attachments[i].Usage = w.Usage // spent, even if the file is left out
			if f.Action == events.FileSummarized {
				out.Attachments[i].Model = w.Model
			}
		}
	}
	var bad error
	_, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		out.Budget, bad = l.Check(s.config.Partitions.Compaction(), next.WithFiles(total))
		out.Known, out.Generation, out.Through = l.HasTurns(), l.Generation(), l.Through()
	})
	out.Fits, out.Level = out.Budget.WithinBudget, out.Budget.Level
	return out, cmp.Or(err, bad)
}

// summarizeFiles summarizes the files that the plan names. Models have the time of the request;
// then the embedded summarizer takes over. A file without a summary is cut.
func (s *Service) summarizeFiles(ctx context.Context, in *events.AttachRequest, plan *measure.FilePlan, by summarize.Writer) ([]*summarize.FileSummary, error) {
	written := make([]*summarize.FileSummary, len(plan.Files))
	models, cancel := context.WithTimeout(ctx, in.SummaryWait())
	defer cancel()
	if err := limit.Of(ctx).Idle(ctx, func() error { // each of them computes in its turn
		var all errgroup.Group
		all.SetLimit(maxSummaries)
		for i := range plan.Files {
			if plan.Files[i].Target == 0 {
				continue
			}
			f := &in.Attachments[i]
			file := summarize.File{
				Name: f.Name, Type: f.Type, Text: *f.Text, MaxUnits: plan.Units(i), Focus: in.Focus, Writer: by,
				Tenant: in.Tenant, OnAttempt: s.attempted(in.Address()),
			}
			all.Go(func() (err error) {
				written[i], err = s.summarizeFile(ctx, models, file)
				return err
			})
		}
		return all.Wait()
	}); err != nil {
		return nil, err
	}
	for i, w := range written {
		if w != nil {
			plan.Summarized(i, w.Text)
		}
	}
	return written, nil
}

// summarizeFile returns nil if a file has no summary. A panic fails this answer alone.
func (s *Service) summarizeFile(ctx, models context.Context, f summarize.File) (out *summarize.FileSummary, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("summarize a file: panic: %v", r)
		}
	}()
	out, err = s.byModel(models, f)
	if err != nil && models.Err() != nil && ctx.Err() == nil {
		paced, end := s.limiter.Paced(ctx, limit.Of(ctx).Account())
		defer end()
		out, err = extract.New().SummarizeFile(paced, f)
	}
	if errors.Is(err, summarize.ErrNothing) || errors.Is(err, summarize.ErrNoRoom) || errors.Is(err, summarize.ErrTooMuch) {
		return nil, nil //nolint:nilnil // nil means: cut it
	}
	return out, err
}

// byModel calls the configured summarizer, once it has one of maxSummaries places.
func (s *Service) byModel(ctx context.Context, f summarize.File) (*summarize.FileSummary, error) {
	by, ok := s.config.Summarizer.(summarize.FileSummarizer)
	if !ok {
		by = extract.New()
	}
	release, err := limit.Of(ctx).Hold(ctx, limit.Models)
	if err != nil {
		return nil, err
	}
	defer release()
	paced, end := s.limiter.Paced(ctx, limit.Of(ctx).Account())
	defer end()
	return by.SummarizeFile(paced, f)
}

// attempted reports to the listener the result of each model that is tried.
func (s *Service) attempted(a events.Address) func(summarize.Attempt) {
	return func(t summarize.Attempt) {
		if e, ok := errors.AsType[*model.Error](t.Err); ok && e.Kind == model.OverQuota {
			observe.Call(s.config.Listener.OverQuota, observe.OverQuota{Address: a, Model: t.Model})
			return
		}
		observe.Call(s.config.Listener.ModelCalled, observe.ModelCalled{Address: a, Model: t.Model, Usage: t.Usage, Err: t.Err})
	}
}
