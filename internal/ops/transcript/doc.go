// Package transcript reads recorded agent sessions and turns them into the
// events their agents would have published.
//
//	source, err := transcript.Open(transcript.Auto, "/home/me/.claude/projects")
//	for s := range source.Sessions(report) { … }
//
// A file is known by its shape, whatever its name is, and may be compressed by gzip or zstd:
//
//   - compactd: JSON Lines, one message per line:
//     {"session","seq","source","kind":"message|compaction","ts","role",
//     "content":[{text|thinking|tool_use|tool_result}],"model",
//     "usage":{input,cache_read,cache_write,output},"meta":{summary,context_window}}
//   - claude-code: the JSON Lines that Claude Code keeps under ~/.claude/projects.
//   - codex: rollouts of Codex, under ~/.codex/sessions.
//   - copilot-cli: events of Copilot CLI, under ~/.copilot/session-state.
//   - gemini-cli: chats and checkpoints of Gemini CLI, under ~/.gemini/tmp.
//   - opencode: its database or its files, under ~/.local/share/opencode, and its exports.
//   - pi: sessions of pi and oh-my-pi, under ~/.pi/agent/sessions and ~/.omp/agent/sessions.
//   - openai: messages of chat completions, an array or {"messages","tools","model"};
//     in a .jsonl one such conversation a line.
//   - swe-agent, mini-swe-agent: their trajectories.
//
// # Guarantees
//
//   - A turn is everything up to and including an assistant message.
//   - Text of the recorded agent's own compaction is left out: lines of kind
//     compaction, messages with meta.summary, and their like. Usage after it is
//     left out too, since it counts another history than ours, and so is usage from
//     where a prompt was a tenth smaller than the one before: something was cleared.
//   - Payloads and ids depend on the file alone, so a turn sent twice is one turn.
//   - Sessions of one [Source] have different names.
//   - A line is read into memory up to 64 MiB, a document up to 256 MiB; one file
//     is held at a time.
//   - Lines that a program took back are left out, and counted in [Session.Missing], with those
//     that it encrypted or did not keep. Claude Code's sessions are read from their beginning
//     to their end: where its user went back and tried again, both tries are in the
//     history, one after the other.
//
// # Concurrency
//
// Functions are safe for concurrent use.
//
// # On failure
//
// Errors name the file and the line, or the message in a document. A [Source] reports
// the first of each file, leaves out what they are about, and goes on.
package transcript
