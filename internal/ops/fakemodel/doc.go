// Package fakemodel is a model behind HTTP without a price: it has chat completions and
// Responses of OpenAI, and Anthropic's messages, whole and as streams, and refuses what is not
// valid or longer than its window.
//
//	m := &fakemodel.Model{Window: 16_384, Output: 1_024, Answer: func(c *fakemodel.Call) fakemodel.Answer {
//		return fakemodel.Answer{Text: fmt.Sprintf("Answer %d.", c.Number)}
//	}}
//	err := http.ListenAndServe("127.0.0.1:8090", m)
//
// # Guarantees
//
//   - A call is checked by the rules of package validate, or those of [Model].Refuse.
//   - A valid call that is too long is refused with the words of its provider.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. Refuse, Answer and OnCall are called one after the other.
//
// # On failure
//
// A request that is not a call of a model is answered with 404, or with 400 if it is not JSON.
package fakemodel
