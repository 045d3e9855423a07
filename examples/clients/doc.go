// Package clients tests the agents that need nothing of compactd but a NATS client or HTTP:
// each runs against a worker, in its own language. The agents on SDKs of providers have a
// model that refuses as its provider would.
//
//	go test ./examples/clients -v                    # those that this machine can run
//	go test ./examples/clients -need go,typescript   # these have to
//
// # Guarantees
//
//   - The agents that run are those of docs/clients.md, and each has the number of lines that the page names.
//   - An agent that cannot be run is named, with what it lacks; one that -need names
//     fails the test.
//   - Nothing is fetched, and nothing written beside the sources: npm installs from its
//     cache, when node_modules is not there.
package clients
