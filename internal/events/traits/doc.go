// Package traits owns what providers and models demand beyond the dialect of their messages.
//
//	if traits.Thinking(model.Provider, model.Name) != traits.Free {
//		// thinking goes only with the history that it was made under
//	}
//
// # Terms
//
//   - Bound thinking is a model's reasoning whose signature covers everything before it: the
//     provider refuses it behind a history that changed.
//
// # Guarantees
//
//   - Every row of a table names its source and the date of it.
//   - A provider or model that no row names has the traits that no provider refuses.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// There are no errors.
package traits
