// Package model is the contract with a language model: one system text and one
// user text in, one text out.
//
//	r, err := m.Complete(ctx, model.Request{System: rules, User: prompt, MaxOutputTokens: 4_000})
//	if e, ok := errors.AsType[*model.Error](err); ok && e.Kind == model.TooLong { … }
//
// It does not depend on sessions and summaries; package summarize makes the prompts
// and checks the answers. Package provider has the implementations, which only the
// worker links; package summarizetest holds them to the contract.
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
