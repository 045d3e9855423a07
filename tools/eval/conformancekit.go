package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/tools/needs"
)

// The compaction-conformance-kit (github.com/jurayh/compaction-conformance-kit, MIT, read on
// 2026-11-24) plants 20 canaries in a random session, compacts it five times to a share of its
// characters, and looks for the tokens of each canary in the text that is left. Its own code makes the
// sessions here. Its semantic corpora ask which of two values holds now; a history states both, so
// they are left out.

// kitBudgets are shares of the characters of a session, with what the best compactor of the kit keeps.
var kitBudgets = []struct{ share, best float64 }{{0.1, 0.40}, {0.2, 0.85}, {0.3, 1}}

const kitRounds = 5

// kitSessions prints the sessions of the kit as JSON.
const kitSessions = `
import json, sys
sys.path.insert(0, sys.argv[1])
from compaction_kit.corpus import build_random_session
out = []
for seed in range(1, 9):
    session, canaries = build_random_session(seed)
    out.append({
        "turns": [{"role": t.role, "text": t.text} for t in session.turns],
        "canaries": [{"kind": c.type.value, "tokens": list(c.required_tokens)} for c in canaries],
    })
json.dump(out, sys.stdout)
`

// kitSession is a session of the kit.
type kitSession struct {
	Turns []struct {
		Role string `json:"role"`
		Text string `json:"text"`
	} `json:"turns"`
	Canaries []struct {
		Kind   string   `json:"kind"`
		Tokens []string `json:"tokens"`
	} `json:"canaries"`
}

// chars are those of the transcript as the kit counts them.
func (s *kitSession) chars() (n int) {
	for _, t := range s.Turns {
		n += len("[") + len(t.Role) + len("] ") + len([]rune(t.Text)) + len("\n")
	}
	return n - 1
}

func readKit(ctx context.Context, dir string) (out []kitSession, err error) {
	data, err := exec.CommandContext(ctx, "python3", "-c", kitSessions, filepath.Join(dir, "src")).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("%s: %w: %s", dir, err, exit.Stderr)
		}
		return nil, err
	}
	return out, codec.Unmarshal(data, &out)
}

// evalKit prints which canaries the summaries of sessions have after five compactions, without a model.
func evalKit(ctx context.Context, dir string, p printer) error {
	if dir == "" {
		p.note("conformance_kit: set CONFORMANCEKIT to a checkout of github.com/jurayh/compaction-conformance-kit")
		return nil
	}
	sessions, err := readKit(ctx, dir)
	if err != nil {
		return err
	}
	for _, b := range kitBudgets {
		var all facts.Share
		kinds := map[string]facts.Share{}
		none := 0
		for i := range sessions {
			text, err := sessions[i].compacted(ctx, int64(b.share*float64(sessions[i].chars())))
			if errors.Is(err, summarize.ErrNoRoom) {
				none++
			} else if err != nil {
				return err
			}
			for _, c := range sessions[i].Canaries {
				s := facts.Share{All: 1}
				if !slices.ContainsFunc(c.Tokens, func(t string) bool { return !strings.Contains(text, strings.ToLower(t)) }) {
					s.Kept = 1
				}
				all, kinds[c.Kind] = all.Plus(s), kinds[c.Kind].Plus(s)
			}
		}
		var parts []string
		for _, kind := range []string{"safety_rule", "hard_constraint", "fact", "goal_state", "user_preference"} {
			parts = append(parts, fmt.Sprintf("%s %s", kind, kinds[kind]))
		}
		p.line("conformance_kit/"+number(b.share), all.Ratio(), atLeast(b.best), fmt.Sprintf("%s; %s; %d sessions without room for a summary", all, strings.Join(parts, ", "), none))
	}
	p.note("conformance_kit: %d sessions, %d compactions of each, in the text of the summary alone; the goals are the best compactor of the kit, which reads its markers", len(sessions), kitRounds)
	return nil
}

// compacted is what is left of a session after its compactions, in lower case. Between two of them
// comes a turn that states nothing.
func (s *kitSession) compacted(ctx context.Context, most int64) (string, error) {
	in := summarize.Input{MaxUnits: most}
	for i, t := range s.Turns {
		in.Messages = append(in.Messages, kitMessage(int64(i+1), dialect.Role(t.Role), t.Text))
	}
	for round := range kitRounds {
		made, err := extract.New().Summarize(ctx, in)
		if err != nil {
			return "", err
		}
		in.Previous, in.Messages = made, []summarize.Message{kitMessage(int64(len(s.Turns)+round+1), dialect.RoleAssistant, "Continuing.")}
	}
	return strings.ToLower(needs.Text([]dialect.Message{in.Previous.Message()})), nil
}

func kitMessage(turn int64, role dialect.Role, text string) summarize.Message {
	return summarize.Message{Turn: turn, Message: dialect.Message{Role: role, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}}
}
