// Package jobs works on summary jobs: it takes them from OUTCOMES, lane by lane, calls a
// summarizer, and publishes each result as a session.summary event.
//
//	p := jobs.Pool{NC: nc, JS: js, Texts: texts, AheadBytes: 1 << 20, Summarizer: s, Listener: &l}
//	p.Run(ctx)
//
//	job ── taken ──► summarizing ──► published ──► acknowledged
//	          ▲           │ models busy, transient failure
//	          └── delayed ┘ at most 5 attempts, then published as failed
//
// Terms: a lane is the urgency of a job, with slots, a share of them for one tenant, and
// time limits (lanes.go); a delivery is one attempt.
//
// # Guarantees
//
//   - A job has its result in the log before it is acknowledged; the first result wins.
//   - No tenant takes all slots of a lane. A model that hangs holds a slot only for the limit of
//     its lane.
//   - A session that was erased since the request gets no result.
//
// # Concurrency
//
// One goroutine reads each lane, and one works on each job. Any worker may take any job. Jobs that
// wait for a slot of their tenant stay in memory; their texts are read with those of an earlier
// job (ahead.go).
//
// # On failure
//
// A crash of a worker costs at most one attempt: the server delivers the job to another worker
// after 30 s without a renewal. After five attempts, or a few more for a job that is minutes
// old, the job is published as failed. A delivery that was given back because its tenant had too many
// jobs is not an attempt.
package jobs
