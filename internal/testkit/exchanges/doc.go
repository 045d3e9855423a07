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
// clients/conformance/README.md describes the files. An adapter of another language is run by a
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
package exchanges
