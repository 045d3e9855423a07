// Package client keeps an agent's conversation inside its model's context window:
// it publishes what the agent says to compactd, and holds the history that the next
// call of the model should get.
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
// Messages are those of the provider, in its own JSON: give values that marshal to
// them, take them back as [encoding/json.RawMessage]. examples/agents has whole
// agents on the SDKs of OpenAI and Anthropic.
//
// # Guarantees
//
//   - A turn is counted once, however often it is sent: every try carries the same
//     id and number. Once [Session.Publish] has sent a turn, it belongs to the
//     session; where the acknowledgement is lost, the next call settles it first.
//   - A message id that another client has used makes no event vanish: it is sent
//     again under a new id, and [Options].OnDuplicate is called.
//   - A compaction replaces exactly what it stands for. Turns published since stay,
//     and an older compaction never replaces a newer one.
//   - [Client.Open] resumes a session on any machine from the log and what was told,
//     with no worker alive.
//   - The log is the truth. When a turn was refused, the session returns to what the
//     log holds, and the next call says so once, with an [*Error].
//   - No outcome is waited for, except by the calls that ask for one: Overflow,
//     Compact, Rewind, Undo.
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
// a deadline. Outcomes that were missed meanwhile are asked for at the next Context;
// where nobody answers, the history is longer than it could be, and valid. What a
// worker refuses is an [*Error] with a stable [Code].
package client
