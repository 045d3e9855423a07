// Package compress answers gateways that request a compressed history before they call a model: the
// contract of LiteLLM, agentgateway, Portkey and Kong. It finds the session, which that contract
// lacks, and calls sync.
//
//	s := compress.New(js, service, onError)
//	out := s.Compress(ctx, "acme", request)
//	original, at, err := s.Retrieve(ctx, mayUse, hash)
//
// Terms: a boundary is a place where an earlier request of the same conversation may have ended: before
// an answer of the model. A scope is the gateway's name for the session, or empty. See
// docs/adr/0035.
//
// # Guarantees
//
//   - A history is answered for a session whose turns are all in it, or for a new session.
//     Two conversations share a session only while they are equal, except for their instructions.
//   - Any worker finds a session again, after any restart, for two weeks after its last
//     request. A sent prefix changes only with a generation.
//   - Tenants are separate: digests and sessions are looked up per tenant, and the answer about an
//     original of another tenant is the same as about an unknown one.
//   - After a failure the history is returned unchanged.
//
// # Concurrency
//
// A [Compressor] is safe for concurrent use.
//
// # On failure
//
// While no worker serves the session, a request waits some seconds. If a digest could not be
// written, or has expired, the next request begins a new session with its whole history.
package compress
