package main

import (
	"regexp"
	"strings"
	"testing"
)

// Everything that is measured can be measured: each line is there, once.
func TestMeasure(t *testing.T) {
	var out strings.Builder
	o := options{rounds: 1, turns: 500, blocks: 1, sessions: 10, idle: 100}
	if err := measureAll(t.Context(), o, t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		linePipeline, lineFull, lineRebuild, lineTurn, lineNames, lineMeasure, linePlan, lineRest, lineP50, lineP99, lineSync, lineEntry,
		lineIdle, lineRestart, lineScaling, lineCost + "_worker", lineCost + "_server", lineIngest, lineDecode + "_mb_s", lineDecode + "_gemini_over_anthropic",
		"rebuild_snapshot_over_log",
	} {
		line := regexp.MustCompile(`(?m)^bench ` + name + ` -?[0-9.]+ [a-z/]+( [<>]=[0-9.]+ (met|missed))?$`) // a heap of a few sessions may shrink
		if n := len(line.FindAllString(out.String(), -1)); n != 1 {
			t.Errorf("%d lines of %s in:\n%s", n, name, out.String())
		}
	}
}
