// Package summarizetest plays the providers of language models, good and bad, and
// holds every [model.Model] to one contract.
//
//	s := summarizetest.Start(t, func(p summarizetest.Prompt) string { return "a summary" })
//	s.Script(summarizetest.RateLimited, summarizetest.Good) // the last mode stays
//	m, err := provider.New(s.Config(summarizetest.Anthropic))
//
// The server speaks the wire formats of OpenAI, Anthropic and Google over real
// HTTP, at the paths of each, and answers refusals with the bodies that the
// providers themselves send. An answer function sees the prompt, so it can play a
// model that obeys whatever it reads.
//
// [Start] listens on 127.0.0.1. [StartPipe] serves over [net.Pipe], for tests in a
// [testing/synctest] bubble, where a hanging provider costs no time.
//
// # Concurrency
//
// A [Server] is safe for concurrent use, but for its exported fields: set them
// before the first call.
package summarizetest
