// Package exchanges runs the suite of clients/conformance: it is the worker and the provider of an
// adapter, over HTTP, and compares what the adapter sends and returns.
//
//	exchanges.Run(t, "../../clients/conformance/exchanges", func(s exchanges.Setup) http.RoundTripper {
//		fitter := client.NewFitter(client.FitterConfig{Worker: &client.HTTP{URL: s.Worker, Token: s.Token}})
//		return &transport.Transport{Fitter: fitter, Session: s.Options.Session}
//	})
//
// RunCore does so for code that holds messages of its own type.
//
// An adapter of another language is run by a
// RoundTripper that passes the request to its process.
//
// # Guarantees
//
//   - Requests come in the order of the file, and none besides: one that is missing, additional or
//     other fails the test with the line of the file.
//   - Bodies for the provider and for the agent are compared byte by byte, requests for the worker
//     member by member. A prefix is replaced by the messages that it stands for, so that a file
//     holds for adapters with and without.
//
// # Concurrency
//
// Each file is a subtest with its own servers and adapter.
//
// # On failure
//
// A file that cannot be read fails its test.
//
// # The files in exchanges
//
// A file begins with a sentence: the rule that it shows. Sections follow, each behind a line with its name between
// dashes (txtar, golang.org/x/tools/txtar). The runner is the agent, the worker and the provider. Requests must come
// in the order of the sections, and no others.
//
//   - options: JSON, the settings of the adapter: session (absent: none), wait_ms (absent: a minute), model. The
//     tenant is default.
//   - restart: the adapter is created again before the next request.
//   - request: the agent sends this: method and path, headers, an empty line, the body.
//   - sync: the worker receives a request. Each member of this JSON must be equal, and null means absent. tenant and
//     session are those of the path.
//   - answer: the worker answers with JSON, or with a status, an empty line and a body. away closes the connection,
//     hang waits until the adapter gives up. abort: the agent aborts its request, which must end this one.
//   - provider: the provider receives exactly this body; same is that of the request. Path and headers must be those
//     of the request. Of the encodings in Accept-Encoding those may be missing that the adapter cannot read.
//   - responds: the provider responds with a status, headers, an empty line and a body. With Content-Encoding: gzip
//     the runner compresses the body.
//   - chunk: the next bytes of that body, sent separately.
//   - cut: the connection ends inside the body.
//   - response: the agent receives a status, an empty line and this body. same, or no such section, is exactly the
//     last response of the provider. error: the call fails.
//   - problems: the codes that the adapter reported during the request, one a line; absent is none.
//   - compacted: the generation that the adapter announced; absent is none.
//
// Bodies are compared byte by byte. The last line feed of a section belongs to the file, except in a chunk. Absent
// headers are Content-Type: application/json and an Authorization with a key of the provider.
//
// An adapter may send a prefix in place of messages that an answer has given a hash. The runner replaces it by these
// messages before it compares.
//
// # The files in core
//
// The sections are those of exchanges, without provider, responds and response. The runner is an agent with messages
// {"role","text","note"}. Its codec writes {"role","content"} with the text as content. It reads a message that compactd
// made into role and text, and copies the note where the message is an edit of the agent's own.
//
//   - fit: the whole history of the agent, a JSON array. Its messages must be as they were afterwards.
//   - fitted: the messages to send: the index of each that is the agent's own object, and others as JSON. none: there is no
//     history to send instead of the refused one.
//   - refused: the provider refused the last call: status and error.
//   - used: the usage of the last call, as the provider counted it.
package exchanges
