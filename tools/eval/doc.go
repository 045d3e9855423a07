// Command eval measures how well compactd keeps what matters, and how little it
// stands in the way. It prints lines of the form
//
//	eval <name> <value> [<goal> met|missed] [(<what it is made of>)]
//
// and lines of notes that begin with #. A missed goal is no error: the status is 1
// only when something could not be measured. The lines are defined below.
//
//	go run ./tools/eval                       # everything, in less than 8 minutes
//	go run ./tools/eval -run 'retention|growth'
//	COMPACTD_SESSIONS=/srv/transcripts:/srv/more go run ./tools/eval
//
// Real sessions are read from the directories that COMPACTD_SESSIONS lists, the others
// from examples/sessions, and the templates of CompactBench from the checkout that COMPACTBENCH
// names. COMPINT and CONFORMANCEKIT name checkouts of two other public measures.
//
// # Lines
//
// retention_* Facts of the condensed range that are still in the compacted history.
// Everything but the newest messages is condensed each time. Of more than 8 sessions 8 are
// taken, in turn one of each repository; so are those of failures_* and dialect_*.
//
//   - /1: one compaction, after each tenth of a session for which the history fits its
//     window, each in a run of its own.
//   - /10: a compaction after every tenth, checked from the second to the tenth.
//   - /embedded writes without a model.
//   - /llm is a model, behind real HTTP, that fills every section with one empty
//     sentence. All that is kept then comes from the record.
//   - The line without / is the least of all.
//
// Code that shares nothing with the record's finds the facts in the messages:
//
//   - paths are absolute paths in the arguments of Edit, Write and similar tools, whose
//     call did not fail. One is present if one line of the history has the whole path.
//   - user_messages are all texts of a user, except what agents put there (an element
//     such as <task-notification>, [Request interrupted, a skill, a caveat). One is
//     present if one line has its first 75 characters, white space as one space. A record
//     keeps 400 of each, and cuts to 160, 80 and 40 if there is no room. Below 80 it
//     counts as lost.
//   - failures are results marked as errors, or that begin with Error: or a traceback.
//     One is present if one line has the first 60 characters of its first line. If that
//     is a bare exit code, the first 40 of the command must be there too.
//   - instructions are messages of the system that the measure plants in the middle of
//     each session, eight in each. One is present if one line has its text.
//   - todos are items of the newest TodoWrite that are not completed. One is present if
//     one line has the whole item. Only the examples have any.
//
// record_tokens_1, _10 The largest record in those runs, in tokens of the default estimator
// for Claude. It counts with a margin, 2.8 UTF-16 units a token. A record is bounded to
// 7,000 units, and to 12,500 when it continues another.
//
// needed_later, needed_lines What the recorded agent used after a compaction, and the share
// of it that the compacted history still has. Retention looks for kinds of facts; this
// looks for what was of use. No model is involved.
//
//   - Each session is played in a window of 200,000 tokens, or where it is short in one
//     that half of its messages fit.
//   - needed_later counts identifiers in the arguments of the calls that came after the
//     compaction, up to the next one: paths, file names, names with a digit, an
//     underscore or a capital inside. Each stood in the history before the compaction,
//     not in the first message of the user, and not between the compaction and the call.
//     needed_lines counts lines of 20 bytes and more that an edit then replaced, or that
//     a patch named. Both must be found whole. Texts that a recording replaced by
//     REDACTED do not count.
//   - /0.6 is the target of the policy, as a share of the available input. Without a
//     further name the policy is the default preset, with /claude or /neurolink that
//     preset. The embedded summarizer answers before the next turn.
//   - /model_windows are sessions in the windows of their models, where some are compacted for the
//     cost of calls. Compactions of idle sessions are not played.
//   - _cut is the newest messages cut to the same number of tokens, counted by o200k. The
//     oldest of them is cut, not left out. _cut_below_system is the same beside the system
//     messages that a session begins with, which an agent that cuts keeps. _missed_over_cut divides the misses of the
//     policy by those of the cut.
//   - _by_call is the mean of the calls that need something, each as one: an edit may have forty lines.
//   - A history of more tokens than its target counts as one that has nothing, unless its outcome
//     states target_unreached. An identifier that a fifth of the sessions contain, two at least, does not count.
//   - used_since are identifiers that calls behind the range of a summary took from it, and the share
//     in view once it is in place; _source is the share in view in front of these calls, and _kept of the lines that
//     it took out of view the share in its message.
//   - Lines with the name of a harness are of its sessions; /quartile is of the sessions
//     by what they keep.
//   - The session is the unit that is sampled, and there are few: in brackets are the
//     least and the most of a session, and of all sessions but one.
//   - /summary compares summaries alone: at the compactions of the recorded agents, what
//     they wrote (/agent), the embedded summarizer's and the newest messages (/cut) of no
//     more tokens. It needs no model, and they had one.
//
// folding_needed_later, folding_needed_lines What calls of the next 40 turns use of results of 8,000 bytes
// and more, and the share of it that each direction of tool_output keeps in a quarter of their bytes. The
// words of the call, by which lines are kept first, are left out.
//
// failures_addressable, failures_verbatim Failures of a session that its history has word
// by word, and those of which it at least names the turn, for a recall. The summaries are
// of the model that writes nothing of use. /10 looks after each of ten compactions that
// condense all they can; /default after each one under the default policy, where results
// are cleared too. Failures are found as for retention_failures.
//
// week_* All real sessions joined into one, again and again until it has 3,000 turns. From
// the second round on all is new: absolute paths have another root, and what users write
// begins with the number of the round. The policy is the default, and each summary comes
// before the next turn.
//
//   - week_share_max is the most that the summary takes of the available input, record
//     included.
//   - week_growth is its size after the last compaction over that after the tenth.
//   - week_paths and the other kinds are facts of all turns so far that the history has
//     word by word, or in whose kind a line of the record names their turn. After each
//     tenth compaction all are looked up.
//
// compactbench The public templates of CompactBench (Apache-2.0) hide a rule, a decision or
// a name among turns about other things. Five cases of each are condensed once, and three
// times with distractors between. The line is the share of the strings looked for that the
// history contains, with a model that writes nothing useful. compactbench_cut is the same
// for the newest messages of the same size. CompactBench itself lets a model answer; items
// that ask what an answer must not contain are left out. Names and distractors are our own.
//
// compint The share of side constraints that the summary alone states word by word, after one and
// after three compactions by the embedded summarizer. COMPINT (MIT) has 15, in four framings. Each is
// put in front of the first, the middle and the last message of the user in recorded sessions that are
// cut to 10,000 to 220,000 tokens. COMPINT itself has other contexts, one constraint in each, and a
// model that decides whether the meaning is stated: 0.17 in the mean of its compactors, 0.903 to 0.956
// with its extractor, which is a model.
//
// conformance_kit The share of the canaries of compaction-conformance-kit (MIT) whose tokens the
// summary alone has after five compactions to 0.1, 0.2 and 0.3 of the characters of a session. The
// goals are the best compactor of the kit, which reads the markers of its canaries. Its semantic
// corpora are left out: they count a value that was replaced as lost where both are stated.
//
// money_cut What calls and summaries cost under the default policy, at the list prices of the models,
// over the cost of cutting the oldest messages at the same trigger and target; of all sessions, and of
// those of each harness. money_none is the same over no compaction; /fit has the sessions that would
// have fit their window without one.
//
// summary_growth_10 The size of the summary after the tenth of ten compactions, divided by
// that after the second, of the session where it is the largest. /same_work is a session
// that is published ten times over and compacted after each round, so that nothing in it is
// new after the first.
//
// prepared_share Of the compactions that needed a summary, those whose summary was there.
// The core decides on the real sessions in the time of the log, under the default policy; a
// simulated model answers each job after 60 s, with a text of 12,000 units. 200 timings of
// each session, at most 800 of all, draw every pause between two turns from those of all
// sessions. Bursts are counted apart: what was there a model's time before the trigger was
// too little to reach the target by, or the last summary came in that time. prepared_misses_own_timing counts the misses at the
// recorded times. /at_prepare is the same without a forecast, summary_seconds: 0.
// summarizer_tokens_ratio compares what summarizers read in the two runs. blocked_ms_p99 is
// the time after each turn until the next call fits. An agent that always publishes waits
// only then.
//
// overflow_p99_ms The time from the publication of a session.overflow to its
// session.compacted at a plain subscriber. The setup is an embedded server, a real worker,
// a model that hangs, and 10,000 jobs that no summarizer has taken. Before each of 100
// overflows the worker of its partition is held until 1,000 turns are stored in front of
// it.
//
// outage_latency_ratio The p99 of a turn's time while a model fails, over that while it
// works. A turn's time begins when it is due, at a constant rate of 600 turns/s. It ends
// when its agent receives the outcome, or when the turn is decided without an outcome. 20
// sessions of a 16,000 window are compacted every few turns. The two sides run one after
// the other, each first in every other round, on servers of their own; the value is the
// median of the ratios of 5 rounds. 14 turns of each session come before: the outage has
// lasted for a while. How many sessions are compacted under each mode is counted by make
// test-faults (TestFaultOutages), which prints a table.
package main
