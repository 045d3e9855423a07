// Package gateway keeps the calls of agents inside the windows of their models, for agents that can change
// only their base URL: a reverse proxy around package client/transport.
//
//	g, err := gateway.New(gateway.Config{
//		Upstreams: map[string]*url.URL{"anthropic": anthropic, "openai": openai},
//		Worker:    &client.HTTP{URL: "http://127.0.0.1:8224", Token: token}, Secret: secret,
//	})
//	err = http.ListenAndServe("127.0.0.1:8787", g)
//
//	agent ── POST /v1/messages ──► gateway ── sync ──► worker
//	                                  └── the messages that fit ──► upstream
//
// Terms: an upstream is a provider. A principal is the sender of a request: the value of a header
// that the operator names, or the credential with the user that the body names. A hint is the name that an agent gives to its
// conversation.
//
// # Guarantees
//
//   - The guarantees of package transport: the messages alone are changed, bytes of answers never, and a call
//     that is refused as too long is sent once more before the first byte of its answer.
//   - A hint is no proof. A conversation goes on where its messages begin with all that is known of
//     it; another one with the same hint is a branch. Principals share no conversation.
//   - A turn is recorded with the call after it, as the agent kept it. A history of one prompt is recorded
//     from 64 KiB on, or if X-Compactd-Session names its session: titles and probes of agents make no sessions.
//   - No credential is stored, logged or counted. A session has a hash of it, with a secret as the
//     key.
//   - Without a worker a call is sent as documented at client.Fitter.
//
// # Concurrency
//
// A [Gateway] is safe for concurrent use. Several behind a balancer need the same secret.
//
// # On failure
//
// If an upstream does not answer, the agent gets 502 in the form of its errors. When an agent
// disconnects, its requests to worker and upstream end.
package gateway
