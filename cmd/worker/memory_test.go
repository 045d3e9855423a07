package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// A refusal ends a start where no worker does without the subject.
func TestRequired(t *testing.T) {
	for subject, want := range map[string]bool{
		"$JS.API.STREAM.INFO.SESSIONS": true, "$KV.LEASES.3": true, "$JS.API.CONSUMER.MSG.NEXT.OUTCOMES.c": true,
		"$JS.API.CONSUMER.MSG.NEXT.OUTCOMES.": false, "compactd.tenants": false,
	} {
		if got := required(fmt.Errorf("nats: %w for Publish to %q", nats.ErrPermissionViolation, subject)); got != want {
			t.Errorf("%s: %t", subject, got)
		}
	}
}

// --memory limits the process unless GOMEMLIMIT does, which the runtime has read by itself;
// without both the limit follows from the machine. Half is for what grows with the work.
func TestMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, c := range []struct {
		variable, flag string
		limit, share   int64 // 0: that of the machine
	}{
		{"", "256MiB", 256 << 20, 128 << 20},
		{"300MiB", "256MiB", 300 << 20, 150 << 20},
		{"off", "256MiB", math.MaxInt64, 0},
		{"", "", int64(defaultMemory()), int64(defaultMemory()) / 2},
	} {
		limit := int64(math.MaxInt64)
		if c.variable == "300MiB" {
			limit = c.limit
		}
		debug.SetMemoryLimit(limit)
		t.Setenv("GOMEMLIMIT", c.variable)
		t.Setenv("COMPACTD_MEMORY", c.flag)
		var f flags
		if _, err := parser(&f, "json").Parse(nil); err != nil {
			t.Fatal(err)
		}
		if share := f.limitMemory(); share != c.share || debug.SetMemoryLimit(-1) != c.limit {
			t.Errorf("GOMEMLIMIT=%s --memory=%s: a limit of %d, %d for the work; want %d, %d", c.variable, c.flag, debug.SetMemoryLimit(-1), share, c.limit, c.share)
		}
	}
	if n := defaultMemory(); n < 1<<20 || n > mostDefaultMemory {
		t.Errorf("the default is %d bytes", n)
	}
	t.Setenv("COMPACTD_MEMORY", "")
	for _, text := range []string{"much", "0", "63MiB"} {
		var f flags
		if _, err := parser(&f, "json").Parse([]string{"--memory=" + text}); err == nil || !strings.Contains(err.Error(), "is not a size of 64MiB or more") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
