package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
	"compactd/internal/testkit/figures"
)

// skillBody is the text of a skill as Claude Code sends it, of about so many bytes.
func skillBody(name string, size int) string {
	head := fmt.Sprintf("Base directory for this skill: /home/user/.claude/skills/%s\n\n# %s\n\n", name, name)
	return head + strings.Repeat("Run the checks in this order, and report what failed. ", max(size-len(head), 0)/54+1)
}

// skillPlayer publishes turns and answers jobs, and looks after each compaction for the
// skills that were launched.
type skillPlayer struct {
	*agent
	t        fataler
	format   events.Format
	launched []string // heads of their texts
	sizes    []int64  // tokens that they take at most
	shown    []bool   // by the last view
	turns    int

	generations, checks, missing int
}

func (p *skillPlayer) publishTurn(turn object) {
	p.turns++
	turn["turn"], turn["generation"] = p.turns, p.ledger.Generation()
	p.look(p.publish(turn))
}

// look answers jobs, and looks for the skills in each new view.
func (p *skillPlayer) look(outs []compaction.Outcome) {
	for _, o := range outs {
		if job, ok := o.Body.(*events.Job); ok {
			more, next := compaction.Decide(p.ledger, p.result(summary(job.ID, min(job.MaxUnits, 6_000))), p.config)
			next.Install(p.ledger)
			p.look(more)
		}
		if o.View == nil {
			continue
		}
		raw, err := p.render(o.View)
		if err != nil {
			p.t.Fatalf("render: %v", err)
		}
		if v := validate.Messages(p.format, raw); len(v) > 0 {
			p.t.Fatalf("turn %d: %v", p.turns, v)
		}
		p.generations++
		all := joined(raw)
		c := o.Body.(*events.Compacted)
		hides := slices.Contains(c.StagesUsed, events.StageSummarize) || slices.Contains(c.StagesUsed, events.StageTruncate) // else what was missing stays so
		for i, head := range p.launched {
			p.checks++
			if found := strings.Contains(all, head); found {
				p.shown[i] = true
				continue
			}
			p.missing++
			// Restored entries make no history larger than it was before the stage.
			most := c.TokensBefore
			if n := len(c.Stages); n > 0 {
				most = c.Stages[n-1].TokensBefore
			}
			half := (p.ledger.Budget().TriggerTokens + c.TargetTokens) / 2
			if c.TokensAfter+p.sizes[i] <= min(half, most) && (p.shown[i] || hides) {
				p.t.Fatalf("turn %d: %s is gone after %v, at %d of %d tokens, and takes %d", p.turns, head, c.StagesUsed, c.TokensAfter, c.AvailableInput, p.sizes[i])
			}
			p.shown[i] = false
		}
	}
}

// launch notes that a skill was launched, whose text has so many bytes.
func (p *skillPlayer) launch(head string, size int) {
	p.launched, p.sizes, p.shown = append(p.launched, head), append(p.sizes, int64(size)/2+200), append(p.shown, true)
}

func joined(raw []codec.Raw) string {
	var b strings.Builder
	for _, r := range raw {
		b.Write(r)
	}
	return b.String()
}

// skillTurns are a launch of a skill as Claude Code makes it: the call, a result that
// reports it, and the text as the user's, in a message of its own or behind the result,
// with a reminder beside it.
func skillTurns(f events.Format, id, name, body string, reminder bool) []msg {
	out := []msg{
		{role: dialect.RoleAssistant, text: "I use a skill.", calls: []call{{id, "Skill", fmt.Sprintf(`{"skill":%q}`, name)}}},
		{role: dialect.RoleTool, results: []result{{id: id, tool: "Skill", text: "Launching skill: " + name}}},
	}
	if reminder {
		out = append(out, msg{role: dialect.RoleUser, text: "<system-reminder>The list of tasks is empty.</system-reminder>"})
	}
	return append(out, msg{role: dialect.RoleUser, text: body})
}

// B16: after every compaction the text of a skill that was launched is in view, or comes
// back, as far as its limits go, in any dialect.
func TestSkillsComeBack(t *testing.T) {
	checks, missing, generations := 0, 0, 0
	config := defaultConfig(t)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]events.Format{events.Anthropic, events.OpenAI, events.NeuroLink}).Draw(t, "format")
		window := rapid.SampledFrom([]int64{50_000, 100_000, 200_000}).Draw(t, "window")
		p := &skillPlayer{agent: newAgent(t, config), t: t, format: f}
		model := object{"provider": "openai", "context_window": window}
		text := strings.Repeat("Words of the conversation go here. ", 100)
		left := window / 25 // what the skills of this session have together, a tenth of the target
		for n := range rapid.IntRange(40, 120).Draw(t, "turns") {
			list := []msg{{role: dialect.RoleUser, text: "Question. " + text[:rapid.IntRange(1, 3_000).Draw(t, "question")]}}
			if n > 0 && n%10 == 0 && left > 300 {
				size := rapid.Int64Range(100, min(left, 3_000)).Draw(t, "skill") * 4
				name := fmt.Sprintf("skill-%d", n)
				body := skillBody(name, int(size))
				left -= int64(len(body))/4 + 60
				list = append(list, skillTurns(f, fmt.Sprint("skill-", n), name, body, rapid.Bool().Draw(t, "reminder"))...)
				p.launch("skills/"+name+"\\n", len(body))
			}
			id := fmt.Sprint("read-", n)
			list = append(list, msg{role: dialect.RoleAssistant, calls: []call{{id, "Read", fmt.Sprintf(`{"file_path":"/src/%d.go"}`, n%17)}}},
				msg{role: dialect.RoleTool, results: []result{{id: id, tool: "Read", text: strings.Repeat("x := compute(y) // a line\n", rapid.IntRange(1, int(window)/100).Draw(t, "lines"))}}},
				msg{role: dialect.RoleAssistant, text: "Answer. " + text})
			p.publishTurn(object{"format": f, "model": model, "messages": messages(f, list...)})
		}
		checks, missing, generations = checks+p.checks, missing+p.missing, generations+p.generations
	})
	figures.Print(t, "B16", "compactions", generations, "checks", checks, "missing", missing)
}

// B16 on real sessions of Claude Code, at several windows.
func TestRealSkillsComeBack(t *testing.T) {
	checks, missing, generations := 0, 0, 0
	for _, s := range realSessions(t) {
		for _, window := range []int64{50_000, 100_000, 200_000} {
			p := playSkills(t, s, window)
			checks, missing, generations = checks+p.checks, missing+p.missing, generations+p.generations
		}
	}
	figures.Print(t, "B16 real", "compactions", generations, "checks", checks, "missing", missing)
}

func playSkills(t *testing.T, s transcript.Session, window int64) *skillPlayer {
	p := &skillPlayer{agent: newAgent(t, defaultConfig(t)), t: t, format: s.Format}
	for _, recorded := range s.Turns {
		turn := object{}
		if err := codec.Unmarshal(recorded.Payload, &turn); err != nil {
			t.Fatal(err)
		}
		delete(turn, "usage")
		turn["model"] = object{"provider": "anthropic", "context_window": window}
		for _, m := range recorded.Messages {
			if i := strings.Index(string(m), "Base directory for this skill: "); i >= 0 && strings.Contains(string(m), `"role":"user"`) {
				p.launch(string(m)[i:i+100], min(len(m), 10_000)) // 5,000 tokens of it
			}
		}
		p.publishTurn(turn)
	}
	return p
}
