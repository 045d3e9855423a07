package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"compactd/internal/events/dialect"
	"compactd/tools/harness"
)

//go:embed peer.mjs
var peerScript []byte

// peerMessage is a message as the reference has it.
type peerMessage struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"tool,omitempty"`
}

// measurePeer races a pass against that of the reference over the same conversation, in turn.
func measurePeer(ctx context.Context, o options, dir string, p printer) error {
	if o.peer == "" {
		fmt.Fprintln(p.out, "# pass_1k_over_peer, pass_10k_over_peer: not measured, the reference is not here: make bench PEER=CHECKOUT")
		return nil
	}
	script := filepath.Join(dir, "peer.mjs")
	if err := os.WriteFile(script, peerScript, 0o600); err != nil {
		return err
	}
	for _, name := range []string{"1k", "10k"} {
		t, err := newTalk(map[string]int{"1k": renderMessages, "10k": longMessages}[name])
		if err != nil {
			return err
		}
		input, err := json.Marshal(map[string]any{"messages": t.forPeer(), "runs": plansPerRound})
		if err != nil {
			return err
		}
		var ours, theirs, checks, ratios []float64
		for range o.rounds {
			us := make([]float64, plansPerRound)
			for i := range us {
				took, err := timed(t.pass)
				if err != nil {
					return err
				}
				us[i] = float64(took.Nanoseconds()) / 1e3
			}
			peer := struct{ Check, Pass float64 }{}
			cmd := exec.CommandContext(ctx, "node", script, o.peer, o.esbuild)
			cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &peer)
			}
			if err != nil {
				return fmt.Errorf("time the reference: %w", err)
			}
			ours, theirs, checks = append(ours, harness.Median(us)), append(theirs, peer.Pass), append(checks, peer.Check)
			ratios = append(ratios, harness.Median(us)/peer.Pass)
		}
		p.line("pass_"+name+"_us", harness.Median(ours), "us")
		p.line("peer_pass_"+name+"_us", harness.Median(theirs), "us")
		p.line("peer_check_"+name+"_us", harness.Median(checks), "us")
		p.line("pass_"+name+"_over_peer", harness.Median(ratios), "ratio")
	}
	return nil
}

// forPeer is the conversation, without its last turn.
func (t *talk) forPeer() (out []peerMessage) {
	for _, seq := range slices.Sorted(maps.Keys(t.texts)) {
		for _, m := range t.texts[seq] {
			message := peerMessage{ID: fmt.Sprintf("%d.%d", seq, len(out)), Role: string(m.Role)}
			for i := range m.Parts {
				switch part := &m.Parts[i]; part.Kind {
				case dialect.PartResult:
					message.Role, message.Tool, message.Content = "tool_result", "read_file", part.Content()
				case dialect.PartText:
					message.Content = part.Content()
				}
			}
			out = append(out, message)
		}
	}
	return out
}
