package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

const (
	renderTarget   = 500_000 // PPM: no history gets there by its tool results alone, but most of it stays
	renderMessages = 1_000
	renderBytes    = 800 // of the text of each
)

// measureRender decides one turn again and again, and renders what was decided.
func measureRender(o options, p printer) error {
	t, err := newTalk(renderMessages)
	if err != nil {
		return err
	}
	floor := func() error {
		for _, r := range t.raws {
			bytes.Clone(r)
		}
		return nil
	}
	return p.race(o, lineRender, t.pass, floor)
}

// talk is a session of messages of 800 characters, of which 30 % are results
// of tools. The turn after them brings it to its trigger.
type talk struct {
	config *compaction.Config
	ledger *compaction.Ledger
	last   *compaction.Turn
	texts  map[measure.Seq][]dialect.Message
	raws   []codec.Raw // that the last pass wrote
}

// pass decides the turn, and renders what was decided.
func (t *talk) pass() error {
	outs, _ := compaction.Decide(t.ledger, t.last, t.config)
	err := planned(outs)
	if err == nil {
		t.raws, _, err = render.Render(outs[0].View, func(s measure.Seq) ([]dialect.Message, error) { return t.texts[s], nil })
	}
	return err
}

func newTalk(messages int) (*talk, error) {
	settings := policy.Default()
	settings.Summarize.Enabled = false
	settings.Target = renderTarget
	settings.Cache.History = 0 // else a long history is cleared before it is full
	c, err := compaction.NewConfig(settings, measure.DefaultWindows())
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(3, 4))
	var turns []string
	for i := range messages / 10 {
		turns = append(turns, tenMessages(r, i))
	}
	turns = append(turns, question)
	wide, err := readTalk(turns, 1<<38, c)
	if err != nil {
		return nil, err
	}
	compaction.Apply(wide.ledger, wide.last, nil, c)
	return readTalk(turns, wide.ledger.Budget().EstimatedInput*1e6/triggerOfDefault+reserve, c)
}

// readTalk takes all turns but the last.
func readTalk(turns []string, window int64, c *compaction.Config) (*talk, error) {
	t := &talk{config: c, ledger: compaction.NewLedger(someone), texts: map[measure.Seq][]dialect.Message{}}
	for i, messages := range turns {
		seq := measure.Seq(i + 1)
		turn, msgs, err := stored.ReadTurn(new(compaction.Config), t.ledger, withWindow(messages, window), seq)
		if err != nil {
			return nil, err
		}
		if t.texts[seq], t.last = msgs, turn; i < len(turns)-1 {
			_, next := compaction.Decide(t.ledger, turn, c)
			next.Install(t.ledger)
		}
	}
	return t, nil
}

// tenMessages are three exchanges with a tool, and two of words.
func tenMessages(r *rand.Rand, i int) string {
	var out []string
	for k := range 3 {
		call := fmt.Sprintf("toolu_%d_%d", i, k)
		out = append(out,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":%q,"name":"read_file","input":{"path":"/usr/src/app/handler_%d.go"}}]}`, prose(r, renderBytes), call, r.IntN(200)),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, call, prose(r, renderBytes)))
	}
	for range 2 {
		out = append(out,
			fmt.Sprintf(`{"role":"assistant","content":%s}`, prose(r, renderBytes)),
			fmt.Sprintf(`{"role":"user","content":%s}`, prose(r, renderBytes)))
	}
	return strings.Join(out, ",")
}
