// Package transport keeps the requests of an SDK inside its model's context window: an
// [http.RoundTripper] that sends the history of each request to compactd, and the messages of the
// answer to the provider. The agent keeps its SDK, its loop and its whole history.
//
//	worker := &client.HTTP{URL: "http://127.0.0.1:8224", Token: token}
//	t := &transport.Transport{Fitter: client.NewFitter(client.FitterConfig{Worker: worker}), Session: "chat-42"}
//	model := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t}))
//
// It reads requests of chat completions and Responses of OpenAI, and of Anthropic's messages, by
// their path (…/chat/completions, …/responses, …/messages) and the array of messages in their
// body. Any other request passes unchanged: also one without a session, one with its history at
// the provider (previous_response_id), one that has the provider compact it (compaction_trigger),
// and one with a signature over its body (AWS4-HMAC).
//
// # Guarantees
//
//   - Only the array of messages changes. Messages that are kept are the caller's own bytes, and
//     so is the rest of the body. A history that compactd does not change is sent as it came. Of
//     the encodings that a request accepts, gzip alone goes to the provider.
//   - Bytes of an answer are never changed, compressed ones included. A stream is held back until
//     its first event with content, at most 64 KiB, because a provider may refuse a call inside a
//     stream.
//   - A call that the provider refused as too long is sent once more, with a shorter history
//     (RoundTrip; whether it is shorter: Fitter.shorter).
//     Where there is none, or after a second refusal, the caller gets the provider's answer.
//   - Without a worker a call goes on as documented at [client.Fitter]. No error of compactd reaches the
//     caller of RoundTrip.
//
// # Concurrency
//
// A [Transport] is safe for concurrent use, by many sessions and by sub-agents of one.
//
// # On failure
//
// When the context of a request ends, the request to the worker ends with it, and nothing is sent
// to the provider.
package transport
