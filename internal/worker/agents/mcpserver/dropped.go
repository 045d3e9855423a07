package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
)

// maxPlaces limits the listed places of one kind of edit in a compaction.
const maxPlaces = 40

// effects describes the effect of an edit on a message, for a model. Other edits are not listed.
var effects = map[events.Op]string{
	events.OpClear: "results cleared", events.OpClearOld: "results cleared", events.OpDeduplicate: "reads replaced by a later one",
	events.OpTrim: "contents cut", events.OpTruncate: "removed", events.OpCondense: "summarized",
	events.OpRestore: "results shown again", events.OpKeep: "kept from a removed range",
}

type droppedArguments struct {
	Since int64 `json:"since_generation"`
}

// dropped lists compactions, newest first, so that a shortened list keeps the newest.
func (v *session) dropped(ctx context.Context, in *droppedArguments) (string, error) {
	var blocks []string
	err := v.service.Compactions(ctx, v.Address, func(c *events.Compacted, _ time.Time, _ events.Trace) error {
		if c.Compacted && c.Generation > in.Since {
			blocks = append(blocks, describe(c))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(blocks) == 0 {
		return fmt.Sprintf("Nothing was removed after generation %d.\n", in.Since), nil
	}
	slices.Reverse(blocks)
	return bounded(strings.Join(blocks, "")), nil
}

// describe lists the edits of a compaction, those of one kind in one line.
func describe(c *events.Compacted) string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d, %s, after turn %d: %d to %d tokens\n", c.Generation, c.Reason, c.Through.Turn, c.TokensBefore, c.TokensAfter)
	if c.RewoundTo != nil {
		fmt.Fprintf(&b, "  the history of generation %d is back\n", *c.RewoundTo)
	}
	var order []string
	places := map[string][]string{}
	for i := range c.Edits {
		e := &c.Edits[i]
		effect := effects[e.Op]
		if effect == "" {
			continue
		}
		if places[effect] == nil {
			order = append(order, effect)
		}
		at := fmt.Sprintf("turn %d message %d", e.Turn, e.Index)
		if e.To != nil && *e.To != e.Position {
			at += fmt.Sprintf(" to turn %d message %d", e.To.Turn, e.To.Index)
		}
		places[effect] = append(places[effect], at)
	}
	for _, effect := range order {
		at := places[effect]
		more := ""
		if len(at) > maxPlaces {
			more = fmt.Sprintf(", and %d more", len(at)-maxPlaces)
			at = at[:maxPlaces]
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", effect, strings.Join(at, ", "), more)
	}
	return b.String()
}
