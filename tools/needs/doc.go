// Package needs measures a compaction by what the agent used after it: identifiers in the
// arguments of its later calls, and lines that it edited then, which stood in the history
// before the compaction. A share of these is still in the history after it.
//
//	s := needs.Read(turns)                      // a recorded session, once
//	needed := s.After(at, stop, common)         // of the calls after turn at, up to turn stop
//	kept := needed.In(needs.Text(history))      // what a history of the same size contains
//
// No model is involved, and nothing is estimated: a session's own continuation is the answer.
//
// # Guarantees
//
// It shares no code with the stages that it measures. Contents of the user's first
// message, and of the messages between the compaction and the call, do not count: the
// agent could take them from there.
//
// # Concurrency
//
// A [Session] is not changed once it is read.
package needs
