package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"compactd/tools/harness"
)

// The lines that have a goal or are requested by name.
const (
	linePipeline = "pipeline_over_floor"
	lineFull     = "pipeline_full_over_floor"
	lineRebuild  = "rebuild_turns_per_s"
	lineTurn     = "turn_cost_10k_over_10"
	lineNames    = "turn_cost_unknown_over_known"
	lineMeasure  = "measure_mb_s"
	lineDecode   = "decode"
	linePlan     = "plan_10k_us"
	lineRender   = "render_1k_us"
	linePeer     = "pass_10k_over_peer"
	lineP50      = "latency_2k_p50_ms"
	lineP99      = "latency_2k_p99_ms"
	lineSync     = "sync_p99_ms"
	lineEntry    = "bytes_per_entry"
	lineIdle     = "bytes_per_idle_session"
	lineRestart  = "restart_s"
	lineScaling  = "workers_2_over_1"
	lineCost     = "cost_cpu_s_per_million_turns"
	lineIngest   = "ingest_over_drain"
	lineRest     = "idle_cpu_percent"
	lineRSS      = "rss_mb"

	linePartitions = "partitions"
)

// goals are bounds of values, from docs/performance.md: at least of those in atLeast, at most of the others.
var (
	atLeast = map[string]float64{
		linePipeline: 0.80, lineFull: 0.40, lineMeasure: 400,
		"decode_openai_over_anthropic": 0.7, "decode_gemini_over_anthropic": 0.7, "decode_bedrock_over_anthropic": 0.7,
	}
	atMost = map[string]float64{
		lineTurn: 1.2, lineNames: 1.2, "plan_10k_over_floor": 4.5, "render_1k_over_floor": 1.8, "pass_1k_over_peer": 0.33, "pass_10k_over_peer": 0.33,
		lineP50: 1, lineP99: 8, "sync_p50_ms": 1.5, lineSync: 10, lineIngest: 1.2, lineRest: 0.2, lineRSS: 512,
	}
)

// printer writes results.
type printer struct{ out io.Writer }

// header describes the machine.
func (p printer) header() {
	fmt.Fprintf(p.out, "# %s, %s\n", cpuName(), harness.Machine())
}

// line writes one result; ratios, times and allocations get two decimals, CPU time one.
func (p printer) line(name string, value float64, unit string) {
	decimals := 0
	if strings.HasSuffix(name, "_cpu_us") {
		decimals = 1
	} else if unit == "ratio" || unit == "ms" || unit == "s" || unit == "allocs" || unit == "percent" {
		decimals = 2
	}
	fmt.Fprintf(p.out, "bench %s %.*f %s%s\n", name, decimals, value, unit, verdict(name, value))
}

// verdict compares a value with its goal, "" where it has none.
func verdict(name string, value float64) string {
	bound, met := ">=", false
	goal, ok := atLeast[name]
	if met = value >= goal; !ok {
		goal, ok = atMost[name]
		bound, met = "<=", value <= goal
	}
	switch {
	case !ok:
		return ""
	case met:
		return fmt.Sprintf(" %s%v met", bound, goal)
	}
	return fmt.Sprintf(" %s%v missed", bound, goal)
}

// column is the median of one figure of many results.
func column[T any](results []T, of func(T) float64) float64 {
	var values []float64
	for _, r := range results {
		values = append(values, of(r))
	}
	return harness.Median(values)
}

// ratio is the median of a over b, round by round.
func ratio(a, b []float64) float64 {
	var out []float64
	for i := range a {
		out = append(out, a[i]/b[i])
	}
	return harness.Median(out)
}

// cpuName is read from Linux; elsewhere it is unknown.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
