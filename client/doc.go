// Package client keeps an agent's conversation inside its model's context window. It
// owns the agent's side of the contract: it publishes turns to compactd, receives the
// outcomes, and holds the history for the next call of the model.
//
//	c, err := client.Connect(ctx, client.Options{URL: "nats://127.0.0.1:4222"})
//	s, err := c.Open(ctx, "chat-42", client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}})
//	for {
//		h, err := s.Context(ctx) // never waits for a summary
//		answer, err := call(append(h.Messages, prompt))
//		if tooLong(err) {
//			_, err = s.Overflow(ctx, err, status) // then Context has a shorter history
//			continue
//		}
//		err = s.Publish(ctx, client.Turn{Messages: []any{prompt, answer}, Usage: usage})
//	}
//
// An agent that holds its own history needs no session. For the SDK of a provider, package
// transport fits the history of each request. A [Conversation] does so for messages of any type:
// it takes the whole history before each call, and returns what to send. Both go on without a
// worker. [Client.Sync] and [HTTP.Sync] are the request below them, over NATS and HTTP.
//
// Messages are those of the provider, in its own JSON: pass values that marshal to
// them; they come back as [encoding/json.RawMessage]. examples/agents has whole agents
// behind package transport.
//
// # Terms
//
//   - A turn is what the conversation gained since the last one: messages, numbered
//     from 1. The log holds every turn.
//   - An outcome is what a worker has decided and published: a compaction, a change of
//     the budget, a rejection.
//   - A generation counts the compactions of a session. A compaction replaces the
//     turns up to a turn boundary, its prefix; the turns after it stay as they are.
//   - A turn retracts others when it is published in their place ([Turn].ReplacesFrom).
//
// # Lifecycle of a session
//
//	         Open: subscribe, then read the history from a worker,
//	               or from log and outcomes
//	                 │
//	                 ▼
//	┌───────────► in step ── Publish ──► turn open ── acknowledged ──► in step
//	│                │                      └─ no acknowledgement: CodeUnacknowledged;
//	│                │                         the next call sends it again
//	│                ├─ a compaction is received: the prefix is swapped, still in step
//	│                ├─ reconnect: the next Context fetches missed outcomes
//	│                ├─ the log lost turns, or the session was reset ────────────► lacking
//	│                ├─ a turn took back a part of the prefix, or was not stored ► stale
//	│                ├─ a turn was rejected, or the session erased ──────────────► refused
//	│                └─ Close ───────────────────────────────────────────────────► closed
//	│
//	└── the next call ◄── lacking: that publishes, sends the turns again
//	                  ◄── stale:   reads the history again
//	                  ◄── refused: reads the history again, and returns the [*Error]
//
//	Close: subscriptions end; later calls return CodeClosed. Published turns stay.
//
// # Guarantees
//
//   - A turn is counted once, however often it is sent: every try carries the same
//     id and number. Once [Session.Publish] has sent a turn, it belongs to the
//     session. If the acknowledgement is lost, the next call resolves it first.
//   - No event is lost when another client has used its message id: it is sent again
//     under a new id, and [Options].OnDuplicate is called.
//   - A compaction replaces exactly its prefix. Turns published since stay, and an
//     older compaction never replaces a newer one.
//   - [Client.Open] resumes a session on any machine from the log and the published
//     outcomes; no worker has to run.
//   - The log is the truth. When a turn was refused, the session returns to what the
//     log holds, and the next call returns one [*Error].
//   - No call waits for an outcome, except those that request one: Overflow, Compact,
//     Rewind, Undo.
//
// # Concurrency
//
// A [Client] and a [Session] are safe for concurrent use. Calls that publish run one
// after the other; tools may call Check, Recall and Search meanwhile. A session has
// one agent at a time: turns of a second one are refused with [CodeTurnConflict].
//
// # On failure
//
// Connections come back by themselves. Publish tries until its context ends; give it
// a deadline. Missed outcomes are requested at the next Context; if no worker answers,
// the history is longer than it could be, and valid. A refusal of a worker is an
// [*Error] with a stable [Code].
package client
