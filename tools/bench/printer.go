package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// The lines that have a goal or are asked for by name.
const (
	linePipeline = "pipeline_over_floor"
	lineFull     = "pipeline_full_over_floor"
	lineRebuild  = "rebuild_turns_per_s"
	lineTurn     = "turn_cost_10k_over_10"
	lineMeasure  = "measure_mb_s"
	linePlan     = "plan_10k_us"
	lineRender   = "render_1k_us"
	lineP50      = "latency_2k_p50_ms"
	lineP99      = "latency_2k_p99_ms"
	lineEntry    = "bytes_per_entry"
	lineIdle     = "bytes_per_idle_session"
	lineRestart  = "restart_s"
	lineScaling  = "workers_2_over_1"
	lineRSS      = "rss_mb"
)

// printer writes results.
type printer struct{ out io.Writer }

// header says on what machine this is, and how busy it was before.
func (p printer) header() {
	fmt.Fprintf(p.out, "# %s, %d CPUs, %s %s/%s, load %s\n", cpuName(), runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH, load())
}

// line writes one result; ratios, times and allocations get two decimals, CPU time one.
func (p printer) line(name string, value float64, unit string) {
	decimals := 0
	if strings.HasSuffix(name, "_cpu_us") {
		decimals = 1
	} else if unit == "ratio" || unit == "ms" || unit == "s" || unit == "allocs" {
		decimals = 2
	}
	fmt.Fprintf(p.out, "bench %s %.*f %s\n", name, decimals, value, unit)
}

// median of values; 0 of none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the value below which the share q of all values lies.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// column is the median of one figure of many results.
func column[T any](results []T, of func(T) float64) float64 {
	var values []float64
	for _, r := range results {
		values = append(values, of(r))
	}
	return median(values)
}

// ratio is the median of a over b, round by round.
func ratio(a, b []float64) float64 {
	var out []float64
	for i := range a {
		out = append(out, a[i]/b[i])
	}
	return median(out)
}

// cpuName is what Linux says; elsewhere it is not known.
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

// load is the load average of the last minute, before anything is measured.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
