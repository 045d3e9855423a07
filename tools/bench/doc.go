// Command bench measures how fast compactd is on the machine it runs on. It
// starts a NATS server of its own in a temporary directory and real workers beside
// it, and prints a header and lines of the form
//
//	bench <name> <value> <unit>[ <=<goal> met| <=<goal> missed]
//
// Every value is the median of alternating rounds. Machines differ, ratios hold:
// a ratio is taken within one round, so that both sides saw the same machine.
//
//	go run ./tools/bench                      # everything, in 5 minutes
//	go run ./tools/bench -run pipeline -rounds 7
//	TMPDIR=/mnt/disk go run ./tools/bench     # streams and ledgers on that disk
//
// Lines:
//
//   - pipeline_over_floor: turns/s of a worker that drains the backlog, over those of the
//     floor. P = 8, checkpoints on. Each session gets one outcome in its 100 turns, a
//     session.budget of about 530 bytes, at a turn of its own. The drain ends when every
//     outcome is stored with its marker.
//   - floor_turns_per_s: the floor: an ordered consumer for each partition of the same log,
//     with the worker's pulls, and events.DecodeTurn.
//   - floor_read_turns_per_s: the floor, and the blocks of every message read, which
//     DecodeTurn leaves as they came. The prototype's floor decoded those too.
//   - pipeline_cpu_us, floor_cpu_us: CPU time of the whole process for a turn, server
//     included. Other programs disturb it less than the rates.
//   - pipeline_full_over_floor: the same log under small windows: 1.6 compactions a
//     session, each outcome a whole history of about 74 KB.
//   - cost_cpu_s_per_million_turns_worker, …_server: CPU time of a worker in a process of
//     its own, from its start to its end, and of the server's process meanwhile. The log is
//     that of pipeline_over_floor, under the default policy.
//   - ingest_over_drain: turns/s that four publishers store, over sockets, over turns/s
//     that a worker drains beside the server, in one round. ingest_turns_per_s is the first
//     of them.
//   - rebuild_turns_per_s: a worker without checkpoints starts on the drained log: turns
//     over the time until it is ready.
//   - rebuild_snapshot_turns_per_s, …_over_log: the same on an empty directory, with the
//     snapshots of the one that drained; and over the line above.
//   - restart_s, restart_over_floor: from the start of a worker until it is ready, with
//     100,000 sessions of one turn on file; over reading the files once.
//   - restart_snapshot_s, restart_log_s: the same on an empty directory; the same without
//     files and snapshots.
//   - workers_2_over_1, workers_4_over_1: 2 and 4 worker processes that work off the log
//     together, from their start, over one; the server has its share of the cores.
//   - rss_mb, rss_over_limit, rss_anon_mb: most memory of a worker process under
//     GOMEMLIMIT=256MiB while it works off 1 million turns over 10,000 sessions, one in
//     5,000 with a result of 900 KB, all of them compacted; the last is without mapped
//     files. Only with -run rss; -rss-turns N for less.
//   - turn_cost_10k_over_10: Decide and Install of a turn in a session of 10,000 messages,
//     over the same in a session of 10.
//   - turn_cost_unknown_over_known: a turn in a session of 10 messages whose model no table of
//     windows has, over the same of a model that a table has.
//   - turn_cost_10k_over_hash, _allocs: the same turn in the long session, over SHA-256 of
//     its payload, and its allocations.
//   - plan_10k_us: Decide of the turn that brings a session of 10,000 messages, 15,000
//     entries, to its trigger, every stage run, no text.
//   - plan_10k_over_floor: that, over a copy of as many entries and one estimate of each.
//   - render_1k_us: Decide and Render of such a turn in a session of 1,000 messages of 800
//     characters, 30 % of them results of tools. Every stage runs, and most messages stay.
//   - render_1k_over_floor: that, over a copy of the messages that were written.
//   - pass_1k_us, pass_10k_us: the same work, in sessions of 1,000 and of 10,000 messages, and
//     pass_1k_over_peer, pass_10k_over_peer: over the time that the compactor of the reference
//     takes for the same conversation at half its size, without a summary, in node, warmed up.
//     peer_pass_1k_us, peer_check_1k_us and the like: that time, and of its check before a call.
//     Only with -peer.
//   - measure_mb_s, measure_over_floor: text that Measure takes in a second, and its speed
//     over that of a loop that sums up the same bytes.
//   - decode_mb_s: turns of the dialect anthropic that are decoded in a second, as a
//     partition does it.
//   - decode_openai_over_anthropic and the like: the speed at which the same turns are
//     decoded in another dialect, over that of anthropic. A dialect that writes more bytes
//     for the same turn pays for them.
//   - idle_cpu_percent, idle_server_cpu_percent: of one core, CPU time of a worker process that
//     serves 8 partitions and 100 sessions of one turn while nothing comes, and of the server's.
//   - partitions_8_cpu_percent, …_anon_mb, …_goroutines: what a worker with an embedded server and 8 partitions uses
//     while nothing comes, and the same of 64 and 256 partitions, at the same time; …_cpu_over_8: CPU time over that of
//     8 partitions; …_ready_s: from its start until it serves all; …_list_ms: of `worker partitions list`. Only with
//     -run partitions.
//   - latency_2k_p50_ms, _p99_ms: 2,000 turns/s for 15 s, open loop: from the time a turn
//     is due until a plain subscriber has its outcome, 300 outcomes a round.
//   - sync_p50_ms, sync_p99_ms: 500 syncs/s for 15 s beside 2,000 turns/s of other
//     sessions, open loop: from the time a sync is due until its answer is there. 100
//     sessions with histories of 1 MB each; a sync sends its prefix and one exchange, and
//     waits for the decision as by default. Nothing is compacted. sync_late counts the
//     answers that came before it, sync_whole the histories that had to be sent again as a
//     whole after such an answer.
//   - bytes_per_entry: growth of the heap for each ledger entry, 1,000 sessions with 100
//     messages: 96 bytes of entry, and everything else a session has.
//   - bytes_per_idle_session: growth of the heap for each of 100,000 sessions of one turn.
//
// The last two do not include what the worker's own table, the server and the cache of texts
// store of a session. docs/performance.md has the values of one machine.
package main
