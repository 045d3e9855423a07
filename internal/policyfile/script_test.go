package policyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The scripts show what becomes of a file and of the command line (A8, A11, A13),
// and every problem reported at once. Commands:
//
//	load policy=NAME threshold= disable set=(…) lock=(…) unlock=(…)   the lines are a file, policy.yaml
//	write tenant=                                 the policy as it is printed
//
// load prints what does not come from a preset.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *Settings
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "load":
				var err error
				if s, err = load(d); err != nil {
					return err.Error()
				}
				return changes(s)
			case "write":
				var b strings.Builder
				tenant := ""
				d.MaybeScanArgs(t, "tenant", &tenant)
				if err := s.Write(&b, tenant); err != nil {
					t.Fatal(err)
				}
				return strings.Replace(b.String(), s.Config.Hash(), "HASH", 1) // another with each version of the rules
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
				return ""
			}
		})
	})
}

func load(d *datadriven.TestData) (*Settings, error) {
	var o Options
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "policy":
			o.Policy = a.Vals[0]
		case "threshold":
			o.Threshold = a.Vals[0]
		case "disable":
			o.Disable = true
		case "set":
			o.Set = append(o.Set, a.Vals...)
		case "lock":
			o.Lock = append(o.Lock, a.Vals...)
		case "unlock":
			o.Unlock = append(o.Unlock, a.Vals...)
		}
	}
	if d.Input == "" {
		return Load(o)
	}
	return parse("policy.yaml", []byte(d.Input), o)
}

// changes lists what a user wrote, for the worker and for each tenant.
func changes(s *Settings) string {
	var b strings.Builder
	list := func(title string, l layers) {
		fmt.Fprintln(&b, title)
		for path, value := range l.policy.Values() {
			if p := l.places[path]; !p.preset {
				fmt.Fprintf(&b, "  %s: %s, %s\n", path, text(value), p)
			}
		}
		for _, path := range l.policy.Locked {
			fmt.Fprintf(&b, "  %s is locked, %s\n", path, l.locks[path])
		}
	}
	list("worker", s.worker)
	for _, name := range slices.Sorted(maps.Keys(s.tenants)) {
		list("tenant "+name, s.tenants[name])
	}
	for _, path := range slices.Sorted(maps.Keys(s.windowPlaces)) {
		fmt.Fprintf(&b, "%s, %s\n", path, s.windowPlaces[path])
	}
	return b.String()
}
