// Package validate owns the rules of the providers: it checks that a history can be sent
// as it is.
//
//	bad := validate.Messages(turn.Format, messages) // every breach, in order
//
// # Terms
//
//   - A rule is one demand of a provider's API, such as call_answered. rules_test.go lists
//     those of each dialect, demanded.go those that only some of its providers have.
//   - A [Violation] is one breach of a rule, with the index of its message.
//
// # Guarantees
//
//   - It shares no code with the readers of package events or the repair of package
//     compaction, so that it can check both: it imports package codec, and the tables of
//     package traits, of providers and their demands. The strict provider of the tests uses the
//     same rules.
//   - A violation never quotes the content of a message.
//   - Each message is read in one pass by the library's decoder, not by the walker of the
//     readers; nothing of its texts is copied.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// There are no errors: a message that is not JSON, or not of its dialect, is a violation
// of the rule bad_shape.
package validate
