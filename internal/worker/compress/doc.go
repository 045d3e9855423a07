// Package compress answers gateways that have histories compressed before they call a model: the
// contract of LiteLLM, agentgateway, Portkey and Kong. It is a caller of sync with what that
// contract lacks: the session.
//
//	s := compress.New(js, service, onError)
//	out := s.Compress(ctx, "acme", request)
//	original, err := s.Retrieve(ctx, mayUse, hash)
//
// Terms: a boundary is where an earlier request of the same conversation may have ended, before
// an answer of the model. A scope is the name that a gateway gave the session, or none. See
// docs/adr/0035.
//
// # Guarantees
//
//   - A history is answered for a session whose turns are all in it, or a session of its own.
//     Two conversations share one only as long as they are equal, but for their instructions.
//   - A session is found again by any worker, after any restart, for two weeks after its last
//     request. A sent prefix changes with a generation alone.
//   - Tenants are apart: digests and sessions are looked up for one, and an original of
//     another is as unknown as one that never was.
//   - A failure gives the history back as it came.
//
// # Concurrency
//
// A [Compressor] is safe for concurrent use.
//
// # On failure
//
// While no worker serves the session, a request waits some seconds. A digest that could not be
// written, or has ended, makes the next request begin a session with all of its history.
package compress
