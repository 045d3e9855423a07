package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/ops/units"
	"compactd/internal/ops/whatif"
	"compactd/tools/origin"
)

// The goals of money: of all that the default policy costs, over cutting at the same limit, and
// for sessions that fit their window over no compaction.
var (
	overCutting = atMost(0.9)
	overNone    = atMost(1.02)
)

// bill is what some sessions cost under a policy and under the baselines.
type bill struct {
	own, cut, none, summaries, lost measure.Money
	sessions                        int
}

func (b *bill) add(own, cut, none *whatif.Costs) {
	b.own, b.cut, b.none = b.own+own.All(), b.cut+cut.All(), b.none+none.All()
	b.summaries, b.lost = b.summaries+own.Summaries, b.lost+own.Lost
	b.sessions++
}

// line prints the cost over that of a baseline.
func (b *bill) line(p printer, name string, base measure.Money, than string, g goal) {
	if base == 0 {
		return
	}
	p.line(name, float64(b.own)/float64(base), g, fmt.Sprintf("%s, of it %s for summaries and %s lost on caches, against %s of %s; %d sessions",
		units.Dollars(b.own), units.Dollars(b.summaries), units.Dollars(b.lost), units.Dollars(base), than, b.sessions))
}

// evalMoney prints what the calls and summaries of sessions cost at the prices of their models.
func evalMoney(ctx context.Context, cs []*corpus, p printer) error {
	columns, err := moneyColumns()
	if err != nil {
		return err
	}
	for i, c := range cs {
		r := whatif.NewReport(columns, whatif.Options{Delay: modelTime, NoFacts: true})
		for _, s := range c.sessions {
			if err := r.Add(ctx, whatif.FromTranscript(s.session)); err != nil {
				return err
			}
		}
		goals := [2]goal{overCutting, overNone}
		suffix := ""
		if i > 0 {
			suffix, goals = "/"+c.name, [2]goal{}
		}
		printMoney(p, c, r, suffix, goals)
	}
	return nil
}

// moneyColumns are the default policy, cutting at its limit, and none.
func moneyColumns() ([]whatif.Policy, error) {
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return nil, err
	}
	columns := []whatif.Policy{{Name: "default", Config: c}}
	for _, name := range []string{"cut", "none"} {
		b, err := whatif.Baseline(name, c)
		if err != nil {
			return nil, err
		}
		columns = append(columns, b)
	}
	return columns, nil
}

// printMoney prints the bill of all sessions, of those of each harness, and of those that fit.
func printMoney(p printer, c *corpus, r *whatif.Report, suffix string, goals [2]goal) {
	var all, fit bill
	each := map[string]*bill{}
	own, cut, none := r.Policies[0].BySession, r.Policies[1].BySession, r.Policies[2].BySession
	for i := range own {
		if own[i].Costs.Calls == 0 {
			continue
		}
		name := origin.Harness(c.sessions[i].messages())
		if each[name] == nil {
			each[name] = &bill{}
		}
		bills := []*bill{&all, each[name]}
		if none[i].Overflow == 0 {
			bills = append(bills, &fit)
		}
		for _, b := range bills {
			b.add(&own[i].Costs, &cut[i].Costs, &none[i].Costs)
		}
	}
	all.line(p, "money_cut"+suffix, all.cut, "cutting", goals[0])
	for _, name := range slices.Sorted(maps.Keys(each)) {
		each[name].line(p, "money_cut"+suffix+"/"+name, each[name].cut, "cutting", goals[0])
	}
	all.line(p, "money_none"+suffix, all.none, "no compaction", goal{})
	fit.line(p, "money_none"+suffix+"/fit", fit.none, "no compaction", goals[1])
}
