package worker

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// Events of a listener are counted, under names and units that follow the conventions of
// Prometheus. Label values outside of the closed sets become other.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(reg, "v1")
	l := m.listener()
	for _, k := range []events.Kind{events.KindTurn, events.KindTurn, events.KindIdle, "sesame"} {
		l.Applied(observe.Applied{Kind: k})
	}
	l.Committed(observe.Committed{Outcomes: 2, Bytes: 300, Took: 3 * time.Millisecond})
	l.Committed(observe.Committed{Took: 20 * time.Second})
	l.Checkpointed(observe.Checkpointed{Partition: 3, Ledgers: 5, Evicted: 2, Kept: 7, Took: time.Millisecond})
	compacted := func(b events.Compacted) { l.Compacted(observe.Compacted{Body: &b}) }
	compacted(events.Compacted{Compacted: true, Reason: events.ReasonThreshold, TokensSaved: 40, StagesUsed: []events.Stage{events.StagePrune, events.StageSummarize}})
	l.Compacted(observe.Compacted{Body: &events.Compacted{Compacted: true, Reason: events.ReasonRewind, TokensSaved: -40}, Omitted: observe.OmittedHour})
	compacted(events.Compacted{Code: events.CodeNothingToDo, Reason: events.ReasonManual})
	l.Rejected(observe.Rejected{Body: &events.Rejected{Code: events.CodeBadJSON}})
	l.Rejected(observe.Rejected{Body: &events.Rejected{Code: "s1-secret"}})
	done := func(e observe.SummaryDone) { e.Took = 2 * time.Second; l.SummaryDone(e) }
	done(observe.SummaryDone{Lane: events.LaneNormal, Model: "openai/b"})
	done(observe.SummaryDone{Lane: events.LaneNormal, Model: "embedded"})
	done(observe.SummaryDone{Lane: events.LaneBackground, Failure: "no_room"})
	done(observe.SummaryDone{Lane: events.LaneBackground, Failure: "Reason: acme"})
	l.ModelCalled(observe.ModelCalled{Model: "openai/b"})
	l.ModelCalled(observe.ModelCalled{Model: "openai/b", Err: &model.Error{Kind: model.Auth}})
	l.ModelCalled(observe.ModelCalled{Model: "openai/b", Err: errors.New("of s1-secret")})
	l.Recalled(observe.Recalled{})
	l.Recalled(observe.Recalled{Search: true})
	l.OverQuota(observe.OverQuota{Model: "openai/b"})
	l.Quarantined(observe.Quarantined{})
	l.Fetched(observe.Fetched{})
	l.Snapshotted(observe.Snapshotted{Bytes: 4096})
	l.Noted(observe.Noted{Note: events.Note{Code: events.CodeUsageUnknown}})
	l.Retrying(observe.Retrying{Step: "commit"})
	l.PartitionReleased(observe.PartitionReleased{Err: errors.New("taken over")})
	l.PartitionReleased(observe.PartitionReleased{})
	m.lag(3, 17, 1500*time.Millisecond)
	m.lag(4, 1, 0)
	m.drop(4)

	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	got := rec.Body.String()
	for _, want := range []string{
		`build_info{version="v1"} 1`,
		`events_applied_total{kind="turn"} 2`, `events_applied_total{kind="idle"} 1`, `events_applied_total{kind="other"} 1`, `events_applied_total{kind="end"} 0`,
		`commits_total 2`, `committed_outcomes_total 2`, `committed_bytes_total 300`,
		`commit_duration_seconds_bucket{le="0.0025"} 0`, `commit_duration_seconds_bucket{le="0.005"} 1`, `commit_duration_seconds_bucket{le="+Inf"} 2`,
		`checkpoints_total 1`, `checkpointed_ledgers_total 5`, `evicted_ledgers_total 2`, `ledgers{partition="3"} 7`,
		`ledger_files_quarantined_total 1`, `events_read_by_sequence_total 1`, `snapshots_total 1`, `snapshot_bytes_total 4096`,
		`compactions_total{reason="threshold",result="compacted"} 1`, `compactions_total{reason="manual",result="nothing_to_do"} 1`,
		`compaction_stages_total{reason="threshold",stage="prune"} 1`, `compaction_stages_total{reason="threshold",stage="summarize"} 1`,
		`compaction_saved_tokens_total{reason="threshold"} 40`,
		`messages_omitted_total{reason="tenant_hour"} 1`, `messages_omitted_total{reason="tenant_burst"} 0`,
		`messages_omitted_total{reason="tenant_share"} 0`, `messages_omitted_total{reason="size"} 0`, `messages_omitted_total{reason="no_text"} 0`,
		`rejected_total{code="bad_json"} 1`, `rejected_total{code="other"} 1`, `rejected_total{code="internal"} 0`, `rejected_total{code="session_reset"} 0`,
		`recalls_total{kind="turn"} 1`, `recalls_total{kind="search"} 1`,
		`noted_total{code="usage_unknown"} 1`,
		`summaries_total{by="model",lane="normal",result="summary"} 1`, `summaries_total{by="embedded",lane="normal",result="summary"} 1`,
		`summaries_total{by="none",lane="background",result="no_room"} 1`, `summaries_total{by="none",lane="background",result="other"} 1`,
		`model_attempts_total{model="openai/b",result="ok"} 1`, `model_attempts_total{model="openai/b",result="auth"} 1`,
		`model_attempts_total{model="openai/b",result="other"} 1`, `model_attempts_total{model="openai/b",result="over_quota"} 1`,
		`summary_duration_seconds_count{lane="normal"} 2`,
		`retries_total{step="commit"} 1`, `partition_failures_total 1`,
		`lag_events{partition="3"} 17`, `lag_seconds{partition="3"} 1.5`,
	} {
		if !strings.Contains(got, "\ncompactd_"+want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	for _, unwanted := range []string{"sesame", "secret", "acme", `saved_tokens_total{reason="rewind"}`, `partition="4"`} {
		if strings.Contains(got, unwanted) {
			t.Errorf("the metrics contain %s", unwanted)
		}
	}
	if t.Failed() {
		t.Logf("%s", got)
	}
}

// docs/operations.md lists every metric with its labels, and no other. Alerts, dashboard and
// scaler use only metrics that exist.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	newMetrics(reg, "v1")
	agents.NewMetrics(reg, func() int64 { return 0 })
	limit.New(limit.Config{Registerer: reg})
	descs := make(chan *prometheus.Desc, 100)
	reg.Describe(descs)
	close(descs)
	parts := regexp.MustCompile(`fqName: "([a-z_]+)".*variableLabels: \{([a-z,]*)\}`)
	known := map[string]bool{}
	for d := range descs {
		m := parts.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		known[m[1]] = true
		row := regexp.MustCompile("(?m)^\\| .*`" + m[1] + "`.*$").FindString(string(doc))
		if row == "" {
			t.Errorf("%s is not in the table", m[1])
		}
		for label := range strings.SplitSeq(m[2], ",") {
			if label != "" && !strings.Contains(row, "`"+label+"`") {
				t.Errorf("%s: label %s is not in the table", m[1], label)
			}
		}
	}
	named := regexp.MustCompile("`(compactd_[a-z_]+)`").FindAllStringSubmatch(string(doc), -1)
	for _, file := range []string{"prometheus/rules.yml", "grafana/compactd.json", "kubernetes/keda.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\b(compactd_[a-z_]+?)(?:_bucket)?\b`).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		named = append(named, found...)
	}
	for _, name := range named {
		if !known[name[1]] {
			t.Errorf("there is no %s", name[1])
		}
	}
	if len(known) < 20 {
		t.Errorf("%d metrics", len(known))
	}
}

// No event ends a worker, whatever numbers it has: a counter of Prometheus panics where it is to fall.
func TestMetricsTakeAnyNumber(t *testing.T) {
	for _, n := range []int64{-1, 0, math.MinInt64, math.MaxInt64} {
		l := reflect.ValueOf(newMetrics(prometheus.NewRegistry(), "v1").listener())
		for _, f := range l.Fields() {
			if f.Kind() == reflect.Func && !f.IsNil() {
				v := reflect.New(f.Type().In(0)).Elem()
				fill(v, n)
				f.Call([]reflect.Value{v})
			}
		}
	}
}

// fill sets every number in a value, behind pointers and in one element of each list too.
func fill(v reflect.Value, n int64) {
	switch {
	case !v.CanSet():
	case v.CanInt():
		v.SetInt(n)
	case v.CanUint():
		v.SetUint(uint64(n))
	case v.CanFloat():
		v.SetFloat(float64(n))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case v.Kind() == reflect.Struct:
		for _, f := range v.Fields() {
			fill(f, n)
		}
	}
}
