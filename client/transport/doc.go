// Package transport keeps the requests of an SDK inside its model's context window: an
// [http.RoundTripper] that sends the history of each request to compactd, and the messages of the
// answer to the provider. The agent keeps its SDK, its loop and its whole history.
//
//	t := transport.New(transport.Config{
//		Worker: &client.HTTP{URL: "http://127.0.0.1:8224", Token: token}, Session: "chat-42",
//	})
//	model := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t}))
//
// It reads requests of chat completions and Responses of OpenAI, and of Anthropic's messages, by
// their path (…/chat/completions, …/responses, …/messages) and the array of messages in their
// body. Any other request passes unchanged: also one without a session, one with its history at
// the provider (previous_response_id), and one with a signature over its body (AWS4-HMAC).
//
// # Guarantees
//
//   - Only the array of messages changes. Messages that are kept are the caller's own bytes, and
//     so is the rest of the body. A history that compactd does not change is sent as it came.
//   - Bytes of an answer are never changed. A stream is held back until its first event with
//     content, at most 64 KiB, because a provider may refuse a call inside a stream.
//   - A call that the provider refused as too long is sent once more, with a shorter history.
//     Where there is none, or after a second refusal, the caller gets the provider's answer.
//   - A worker that does not answer costs a call at most [Config].Wait, and a refused call six
//     seconds. After three failures no worker is requested for [Config].RetryAfter.
//   - Without a worker the last answer is sent with the messages since, where instructions, tools
//     and model are the same; else the caller's own history. If it exceeds nine tenths of the
//     window of the last answer, the oldest turns are left out: instructions and the first prompt
//     stay, and calls stay with their results.
//   - No error of compactd reaches the caller of RoundTrip. [Config].OnProblem gets each code once
//     until a worker answers.
//
// # Concurrency
//
// A [Transport] is safe for concurrent use, by many sessions and by sub-agents of one. It remembers
// the last answers of 256 conversations; one that is not remembered costs its prefix and usage
// alone.
//
// # On failure
//
// When the context of a request ends, the request to the worker ends with it, and nothing is sent
// to the provider.
package transport
