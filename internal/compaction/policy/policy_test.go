package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// B2: target, prepare and threshold are held against each other; the error names all three. A
// preparation that is not stated moves with the other two.
func TestPrepareIsBetweenTargetAndThreshold(t *testing.T) {
	for _, c := range []struct {
		preset, set string
		want        measure.PPM // 0: refused
	}{
		{"default", `{}`, 700_000},
		{"default", `{"summarize":{"prepare":0.6}}`, 0},
		{"default", `{"summarize":{"prepare":0.3}}`, 0},
		{"default", `{"summarize":{"prepare":0.81}}`, 0},
		{"default", `{"target":0.75,"summarize":{"prepare":0.7}}`, 0},
		{"default", `{"threshold":0.65,"summarize":{"prepare":0.7}}`, 0},
		{"default", `{"summarize":{"prepare":0.8}}`, 800_000},
		{"default", `{"threshold":0.5,"target":0.3,"info":0.4}`, 400_000},
		{"default", `{"target":0.75}`, 775_000},
		{"default", `{"target":0.5,"summarize":{"prepare":0.51}}`, 510_000},
		{"claude", `{"summarize":{"prepare":0.5}}`, 0},
		{"neurolink", `{"threshold":0.9}`, 900_000},
		{"default", `{"summarize":{"prepare":0.3,"enabled":false}}`, 300_000},
	} {
		p, _ := policy.Preset(c.preset)
		got, err := p.With(codec.Raw(c.set))
		switch {
		case c.want == 0 && err == nil:
			t.Errorf("%s with %s is accepted", c.preset, c.set)
		case c.want == 0:
			for _, name := range []string{"summarize.prepare", "target", "threshold"} {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%s with %s: %v does not name %s", c.preset, c.set, err, name)
				}
			}
		case err != nil || got.Summarize.Prepare != c.want:
			t.Errorf("%s with %s prepares at %d, want %d: %v", c.preset, c.set, got.Summarize.Prepare, c.want, err)
		}
	}
}

// B14: limits of a tool's output are bytes of UTF-8, and what exceeds them gets smaller.
func TestOutputLimitsAreBytes(t *testing.T) {
	p := policy.Default()
	for _, c := range []struct {
		name         string
		units, bytes uint32
		newlines     uint32
		most         int64 // units that stay; 0: all
	}{
		{"CJK of 153,000 bytes", 51_000, 153_000, 0, 51_200 / 3},
		{"Greek of 51,202 bytes", 25_601, 51_202, 0, 25_600},
		{"ASCII of 51,300 bytes", 51_300, 51_300, 0, 51_200},
		{"ASCII of 51,201 bytes", 51_201, 51_201, 0, 51_200},
		{"ASCII at the limit", 51_200, 51_200, 0, 0},
		{"CJK at the limit", 17_066, 51_198, 0, 0},
		{"a line too many", 20_000, 20_000, 2_000, 20_000 * 2_000 / 2_001},
		{"all its lines", 20_000, 20_000, 1_999, 0},
	} {
		e := measure.Entry{Kind: measure.KindResult, Role: measure.RoleTool, Text: c.units, Bytes: c.bytes, Extent: c.newlines}
		cut := p.ToolOutput.Cut(&e)
		if got := p.ToolOutput.Exceeds(&e); got != (c.most > 0) {
			t.Errorf("%s: exceeds %t", c.name, got)
		} else if kept := cut.Units - measure.LimitNotice; got && (kept > c.most || cut.Units >= int64(c.units) || kept < c.most-1_000) {
			t.Errorf("%s: keeps %d of %d units, at most %d", c.name, kept, c.units, c.most)
		}
	}
}

// Lists of a policy are its own: to set them in one leaves the others (A13).
func TestListsAreNotShared(t *testing.T) {
	base := policy.Default()
	p, err := base.With(codec.Raw(`{"prune":{"protected_tools":["a"],"micro":{"tools":["b"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(policy.Default(), base); d != "" {
		t.Error(d)
	}
	if p.Prune.ProtectedTools[0] != "a" || p.Prune.Micro.Tools[0] != "b" || len(p.Prune.Micro.Tools) != 1 {
		t.Errorf("got %v", p.Prune)
	}
}

// A session cannot lift the bound of its operator's policy.
func TestFoldIsKept(t *testing.T) {
	p := policy.Default()
	for _, field := range []string{`{"max_entries":0}`, `{"max_entries":null}`} {
		if out, err := p.With(codec.Raw(field)); err != nil || out.MaxEntries != p.MaxEntries {
			t.Errorf("%s: %d, %v", field, out.MaxEntries, err)
		}
	}
	for _, field := range []string{`{"max_entries":1}`, `{"max_entries":1000000}`} {
		if _, err := p.With(codec.Raw(field)); events.CodeOf(err) != events.CodeBadPolicy {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A writer that cannot be is refused.
func TestBadWriters(t *testing.T) {
	for _, bad := range []string{
		`{"summarize":{"model":"gpt-5"}}`, `{"summarize":{"provider":"embedded","model":"x"}}`, `{"summarize":{"provider":"a/b"}}`,
		`{"summarize":{"provider":"open ai"}}`, `{"summarize":{"keep":0}}`, `{"summarize":{"keep":1.5}}`,
	} {
		if _, err := policy.Default().With(codec.Raw(bad)); events.CodeOf(err) != events.CodeBadPolicy {
			t.Errorf("%s: %v, want %s", bad, err, events.CodeBadPolicy)
		}
	}
}
