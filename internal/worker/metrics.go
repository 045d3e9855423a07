package worker

import (
	"errors"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/worker/observe"
)

// otherLabel replaces a value outside of the sets.
const otherLabel = "other"

// durations are the buckets for times between 0.25 ms and 10 s.
var durations = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics holds the series for Prometheus; docs/operations.md defines each. The values of labels come from small
// sets that the code or the operator defines, never from a tenant, a session or a conversation.
type metrics struct {
	events map[events.Kind]prometheus.Counter // by kind, resolved once, since each event is counted
	other  prometheus.Counter                 // events of unknown kinds

	commits, committed, committedBytes prometheus.Counter
	commitTook                         prometheus.Histogram

	checkpoints, checkpointed, evicted, quarantined prometheus.Counter
	checkpointTook                                  prometheus.Histogram
	ledgers                                         *prometheus.GaugeVec
	snapshots, snapshotBytes                        prometheus.Counter

	invalid                          prometheus.Counter
	compactions, stages, tokensSaved *prometheus.CounterVec
	money, inUse, linesInUse         *prometheus.CounterVec
	rejected, noted, omitted         *prometheus.CounterVec
	repeated, recalls                *prometheus.CounterVec
	summaries, attempts, modelTokens *prometheus.CounterVec
	summaryTook                      *prometheus.HistogramVec
	retries                          *prometheus.CounterVec
	fetched, failures, foreign       prometheus.Counter

	// Set by readiness checks, not by the listener.
	served, failed            prometheus.Gauge
	partitions, unsplit       prometheus.Gauge
	lagEvents, lagSeconds     *prometheus.GaugeVec
	jobs                      *prometheus.GaugeVec
	streamBytes, streamBounds *prometheus.GaugeVec
	diskFree, diskSize        prometheus.Gauge
	ready                     prometheus.Gauge
	checks                    *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer, version string) *metrics {
	f := promauto.With(prometheus.WrapRegistererWithPrefix("compactd_", reg))
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		commits:        counter("commits_total", "Commits stored, bare markers included."),
		committed:      counter("committed_outcomes_total", "Outcomes and jobs stored by commits."),
		committedBytes: counter("committed_bytes_total", "Bytes of the outcomes and jobs stored by commits."),
		commitTook: f.NewHistogram(prometheus.HistogramOpts{
			Name: "commit_duration_seconds", Help: "Time from the first try of a commit to its acknowledgement.", Buckets: durations,
		}),
		checkpoints:  counter("checkpoints_total", "Checkpoints written."),
		checkpointed: counter("checkpointed_ledgers_total", "Ledgers written by checkpoints."),
		evicted:      counter("evicted_ledgers_total", "Ledgers that left memory."),
		quarantined:  counter("ledger_files_quarantined_total", "Ledger files that failed their checks, were quarantined and rebuilt."),
		checkpointTook: f.NewHistogram(prometheus.HistogramOpts{
			Name: "checkpoint_duration_seconds", Help: "Time to write a checkpoint.", Buckets: durations,
		}),
		snapshots:     counter("snapshots_total", "Copies of ledger files put into the object store."),
		snapshotBytes: counter("snapshot_bytes_total", "Bytes of those copies."),
		ledgers:       gauges("ledgers", "Ledgers in memory, as of the last checkpoint.", "partition"),
		compactions:   counters("compactions_total", "Compactions published, by result: compacted, or the code of the reason why not.", "reason", "result"),
		stages:        counters("compaction_stages_total", "Stages that took part in compactions.", "stage", "reason"),
		tokensSaved:   counters("compaction_saved_tokens_total", "Tokens that compactions removed from histories.", "reason"),
		money:         counters("compaction_dollars_total", "Estimated US dollars, by kind: saved on calls until the next compaction, and lost in the provider's cache.", "kind"),
		linesInUse:    counters("compaction_lines_in_use_total", "Lines that a summary took out of view, with identifiers that the agent used since it was requested, by result: kept in its message, or missing.", "result"),
		inUse:         counters("compaction_files_in_use_total", "Files that calls behind a hidden range use, and whose content it took out of view, by result: restored, or missing.", "result"),
		repeated:      counters("repeated_calls_total", "Calls of agents that repeat one whose result a compaction had taken out of view: reads of files, and runs of other tools.", "kind"),
		recalls:       counters("recalls_total", "Requests for originals of sessions: turns, and searches for a text.", "kind"),
		rejected:      counters("rejected_total", "Events answered by session.rejected.", "code"),
		noted:         counters("noted_total", "Notes beside outcomes, about events that were taken.", "code"),
		invalid:       counter("invalid_histories_total", "Histories that were not valid for their provider, and were stored without messages: a defect."),
		omitted:       counters("messages_omitted_total", "Compactions stored without their messages, by reason.", "reason"),
		summaries:     counters("summaries_total", "Jobs that got their result: summary, or the failure.", "lane", "by", "result"),
		attempts:      counters("model_attempts_total", "Calls of models for summaries: ok, or the kind of failure.", "model", "result"),
		modelTokens:   counters("model_tokens_total", "Tokens of calls of models for summaries.", "model", "kind"),
		summaryTook: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "summary_duration_seconds", Help: "Time from taking a job to its result in the log.", Buckets: prometheus.ExponentialBuckets(.005, 3, 10),
		}, []string{"lane"}),
		retries:      counters("retries_total", "Failures of a step that was tried again.", "step"),
		fetched:      counter("events_read_by_sequence_total", "Events that two reads in a row did not bring, and that were read by their sequence."),
		foreign:      counter("foreign_outcomes_total", "Messages in OUTCOMES that no worker committed, and that were skipped."),
		failures:     counter("partition_failures_total", "Partitions that ended with an error."),
		served:       gauge("partitions_served", "Partitions that this worker serves and that are caught up."),
		failed:       gauge("partitions_failed", "Partitions that ended with an error, and that this worker opens again."),
		partitions:   gauge("partitions", "Partitions of the log, with those that a growth is to make."),
		unsplit:      gauge("partitions_unsplit", "Partitions that a growth of the log is still to split; 0 without one."),
		lagEvents:    gauges("lag_events", "Events of a partition that waited behind the last one read.", "partition"),
		lagSeconds:   gauges("lag_seconds", "Age of the oldest event of a partition whose outcomes are not committed; 0 without one.", "partition"),
		jobs:         gauges("jobs_waiting", "Jobs of all partitions that no summarizer has taken.", "lane"),
		streamBytes:  gauges("stream_bytes", "Bytes that a stream holds.", "stream"),
		streamBounds: gauges("stream_max_bytes", "Bytes that a stream may hold; -1 without a bound.", "stream"),
		diskFree:     gauge("disk_free_bytes", "Bytes free on the disk of the data directory."),
		diskSize:     gauge("disk_size_bytes", "Bytes of the disk of the data directory."),
		ready:        gauge("ready", "1 while /readyz reports ready."),
		checks:       gauges("check_ok", "1 while a check of /readyz finds no problem.", "check"),
	}
	applied := counters("events_applied_total", "Events decided and applied in memory.", "kind")
	m.events, m.other = map[events.Kind]prometheus.Counter{}, applied.WithLabelValues(otherLabel)
	for _, k := range events.LogKinds {
		m.events[k] = applied.WithLabelValues(string(k))
	}
	for _, why := range []string{observe.OmittedSize, observe.OmittedText, observe.OmittedHour, observe.OmittedBurst, observe.OmittedShare, observe.OmittedInvalid} {
		m.omitted.WithLabelValues(why)
	}
	for _, c := range defects { // increase() ignores the first value of a series
		m.rejected.WithLabelValues(codeLabel(c))
	}
	gauges("build_info", "Always 1; the label is the version of the program.", "version").WithLabelValues(version).Set(1)
	return m
}

// defects are the codes of the alert CompactdDefect.
var defects = []events.Code{events.CodeInternal, events.CodeSessionReset}

// grow adds to a counter. A negative number would make it panic, and a provider may report one.
func grow[N ~int | ~int64 | ~float64](c prometheus.Counter, by N) { c.Add(max(float64(by), 0)) }

// onApplied counts an event and the repeated calls of its agent.
func (m *metrics) onApplied(e observe.Applied) {
	m.applied(e.Kind).Inc()
	grow(m.repeated.WithLabelValues("read"), e.Repeated.Rereads)
	grow(m.repeated.WithLabelValues("run"), e.Repeated.Reruns)
}

// onRecalled counts a request for originals.
func (m *metrics) onRecalled(e observe.Recalled) {
	kind := "turn"
	if e.Search {
		kind = "search"
	}
	m.recalls.WithLabelValues(kind).Inc()
}

// listener returns a listener that updates the metrics.
func (m *metrics) listener() observe.Listener {
	return observe.Listener{
		PartitionFailed: func(observe.PartitionFailed) { m.failures.Inc() },
		PartitionReleased: func(e observe.PartitionReleased) {
			if e.Err != nil {
				m.failures.Inc()
			}
		},
		Applied:      m.onApplied,
		Fetched:      func(observe.Fetched) { m.fetched.Inc() },
		Committed:    m.onCommitted,
		Checkpointed: m.onCheckpointed,
		Snapshotted: func(e observe.Snapshotted) {
			m.snapshots.Inc()
			grow(m.snapshotBytes, e.Bytes)
		},
		Quarantined: func(observe.Quarantined) { m.quarantined.Inc() },
		Compacted:   m.onCompacted,
		Rejected:    func(e observe.Rejected) { m.rejected.WithLabelValues(codeLabel(e.Body.Code)).Inc() },
		Noted:       func(e observe.Noted) { m.noted.WithLabelValues(codeLabel(e.Note.Code)).Inc() },
		Recalled:    m.onRecalled,
		ModelCalled: m.onModelCalled,
		OverQuota:   func(e observe.OverQuota) { m.attempts.WithLabelValues(e.Model, string(model.OverQuota)).Inc() },
		SummaryDone: m.onSummaryDone,
		Foreign:     func(e observe.Foreign) { grow(m.foreign, e.Messages) },
		Retrying:    func(e observe.Retrying) { m.retries.WithLabelValues(e.Step).Inc() },
	}
}

func (m *metrics) applied(k events.Kind) prometheus.Counter {
	if c := m.events[k]; c != nil {
		return c
	}
	return m.other // a client may publish any kind
}

func (m *metrics) onCommitted(e observe.Committed) {
	m.commits.Inc()
	grow(m.committed, e.Outcomes)
	grow(m.committedBytes, e.Bytes)
	m.commitTook.Observe(e.Took.Seconds())
}

func (m *metrics) onCheckpointed(e observe.Checkpointed) {
	m.checkpoints.Inc()
	grow(m.checkpointed, e.Ledgers)
	grow(m.evicted, e.Evicted)
	m.checkpointTook.Observe(e.Took.Seconds())
	m.ledgers.WithLabelValues(partitionLabel(e.Partition)).Set(float64(e.Kept))
}

func (m *metrics) onCompacted(e observe.Compacted) {
	if e.Invalid != nil {
		m.invalid.Inc()
	}
	if e.Omitted != "" {
		m.omitted.WithLabelValues(e.Omitted).Inc()
	}
	reason, result := string(e.Body.Reason), "compacted"
	if !e.Body.Compacted {
		result = codeLabel(e.Body.Code)
	}
	m.compactions.WithLabelValues(reason, result).Inc()
	for _, s := range e.Body.StagesUsed {
		m.stages.WithLabelValues(string(s), reason).Inc()
	}
	for _, s := range e.Body.Stages {
		grow(m.inUse.WithLabelValues("restored"), s.Restored)
		grow(m.inUse.WithLabelValues("missing"), s.Missing-s.Restored)
		grow(m.linesInUse.WithLabelValues("kept"), s.LinesKept)
		grow(m.linesInUse.WithLabelValues("missing"), s.LinesMissing-s.LinesKept)
	}
	if saved := e.Body.TokensSaved; saved > 0 { // negative after a rewind
		m.tokensSaved.WithLabelValues(reason).Add(float64(saved))
	}
	if c := e.Body.Cache; c != nil {
		grow(m.money.WithLabelValues("saved"), float64(c.Saved)/nanos)
		grow(m.money.WithLabelValues("lost"), float64(c.Lost)/nanos)
	}
}

// nanos is the number of nanodollars in a dollar.
const nanos = 1e9

func (m *metrics) onModelCalled(e observe.ModelCalled) {
	m.attempts.WithLabelValues(e.Model, attemptLabel(e.Err)).Inc()
	grow(m.modelTokens.WithLabelValues(e.Model, "input"), e.Usage.Input)
	grow(m.modelTokens.WithLabelValues(e.Model, "output"), e.Usage.Output)
}

func (m *metrics) onSummaryDone(e observe.SummaryDone) {
	by := "model"
	switch e.Model {
	case "":
		by = "none"
	case extract.Model:
		by = "embedded"
	}
	m.summaries.WithLabelValues(string(e.Lane), by, resultLabel(e.Failure)).Inc()
	m.summaryTook.WithLabelValues(string(e.Lane)).Observe(e.Took.Seconds())
}

// drop deletes the series of a partition that is no longer served.
func (m *metrics) drop(partition int) {
	for _, g := range []*prometheus.GaugeVec{m.ledgers, m.lagEvents, m.lagSeconds} {
		g.DeleteLabelValues(partitionLabel(partition))
	}
}

// lag sets the backlog of a partition.
func (m *metrics) lag(partition int, events uint64, age time.Duration) {
	m.lagEvents.WithLabelValues(partitionLabel(partition)).Set(float64(events))
	m.lagSeconds.WithLabelValues(partitionLabel(partition)).Set(age.Seconds())
}

// codeLabel returns the label of a code: itself if it is a known code.
func codeLabel(c events.Code) string {
	if _, ok := events.Codes[c]; !ok {
		return otherLabel
	}
	return string(c)
}

// attemptLabel returns ok or the kind of the error.
func attemptLabel(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return string(e.Kind)
	}
	return otherLabel
}

var plainFailure = regexp.MustCompile(`^[a-z_]{1,32}$`)

// resultLabel returns summary, or the pool's name of the failure.
func resultLabel(failure string) string {
	switch {
	case failure == "":
		return "summary"
	case plainFailure.MatchString(failure):
		return failure
	default:
		return otherLabel
	}
}
