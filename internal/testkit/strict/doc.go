// Package strict is a fake of the providers that refuses what the real ones refuse.
//
//	call := strict.Call{Provider: "anthropic", Model: "claude-opus-5-5", Messages: history}
//	if refusals := strict.Refuse(call); len(refusals) > 0 {
//		t.Fatal(refusals)
//	}
//	answer := strict.Think(call, "reasoning") // a thinking block that is bound to the call
//
// # Terms
//
//   - A refusal is one breach of a rule, with the words of the provider.
//   - The rules are those of package validate. [Rules] adds what depends on more than a
//     history: the signatures of thinking, and the number of media that the model takes.
//
// # Guarantees
//
//   - It shares no code with the readers and writers of compactd, but the rules with its
//     validator: what one refuses the other does.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// A body that is no JSON is refused as the provider does.
package strict
