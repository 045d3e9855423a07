// Package jobs works on summary jobs: it takes them from OUTCOMES, lane by lane, calls a
// summarizer, and publishes each result as a session.summary event.
//
//	p := jobs.Pool{NC: nc, JS: js, Texts: texts, AheadBytes: 1 << 20, Summarizer: s, Listener: &l}
//	p.Run(ctx)
//
//	job ── taken ──► summarizing ──► published ──► acknowledged
//	          ▲           │ models busy, failure that may pass
//	          └── delayed ┘ at most 5 tries, then published as failed
//
// Terms: a lane is the urgency of a job, with slots, a share of them for one tenant, and
// limits of time (lanes.go); a delivery is one try.
//
// # Guarantees
//
//   - A job has its result in the log before it is acknowledged; the first result wins.
//   - No tenant takes all slots of a lane. A model that hangs holds a slot for the limit of
//     its lane.
//   - A session that was erased meanwhile gets no result.
//
// # Concurrency
//
// One goroutine reads each lane, and one works on each job. Any worker may take any job. The
// texts of jobs that wait for a slot of their tenant are read with those of the job before them
// (ahead.go), and wait in memory with it.
//
// # On failure
//
// A worker that crashes repeats at most a try: the server delivers the job to another one
// after 30 s without a sign of life. After five tries, or a few more of a job that is minutes
// old, the job is published as failed. A delivery that rested because its tenant had too many
// jobs is no try.
package jobs
