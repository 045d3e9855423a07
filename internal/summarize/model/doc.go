// Package model completes a prompt with a language model of some provider: one
// system text and one user text in, one text out.
//
//	m, err := model.New(model.Config{Provider: model.Anthropic, Name: "claude-haiku-4-5", Key: key})
//	r, err := m.Complete(ctx, model.Request{System: rules, User: prompt, MaxOutputTokens: 4_000})
//	if e, ok := errors.AsType[*model.Error](err); ok && e.Kind == model.TooLong { … }
//
// It knows nothing of sessions and summaries; package summarize makes the prompts
// and judges the answers.
//
// # Guarantees
//
//   - A request carries no tools, and what comes back is text: a call that a model
//     makes nevertheless is never followed and shows as [FinishTool].
//   - A failure is an [Error] with a [Kind]; neither it nor [Model.Name] holds a key
//     or text of the prompt.
//
// # Concurrency
//
// A [Model] is safe for concurrent use.
package model
