package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rogpeppe/go-internal/testscript"

	"compactd/internal/events"
)

// played are the figures of a session that do not depend on who played it.
type played struct {
	Session               string
	Compactions           int
	Peak, Saved, Overflow int64
}

// figures compares what publisher replay and worker replay print as JSON.
func figures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: figures PUBLISHED REPLAYED")
	}
	var published struct {
		Each []struct {
			Session     string
			Compactions int
			Peak        int64 `json:"peak_tokens"`
			Saved       int64 `json:"tokens_saved"`
			Overflow    int64 `json:"overflow_turn"`
		}
	}
	var replayed struct {
		Policies []struct {
			BySession []struct {
				Session     string
				Compactions int
				Peak        int64 `json:"peak_tokens"`
				Saved       int64 `json:"saved_tokens"`
				Overflow    int64 `json:"overflow_turn"`
			} `json:"by_session"`
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &published))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &replayed))
	var sides [2][]played
	for _, s := range published.Each {
		sides[0] = append(sides[0], played{Session: s.Session, Compactions: s.Compactions, Peak: s.Peak, Saved: s.Saved, Overflow: s.Overflow})
	}
	for _, s := range replayed.Policies[0].BySession {
		sides[1] = append(sides[1], played{Session: s.Session, Compactions: s.Compactions, Peak: s.Peak, Saved: s.Saved, Overflow: s.Overflow})
	}
	for _, side := range sides {
		slices.SortFunc(side, func(a, b played) int { return cmp.Compare(a.Session, b.Session) })
	}
	if !slices.Equal(sides[0], sides[1]) || len(sides[0]) == 0 {
		ts.Fatalf("figures differ:\npublished %+v\nreplayed  %+v", sides[0], sides[1])
	}
}

// shown checks that history --generation states the tokens that the newest entry of history has.
func shown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shown HISTORY SHOWN")
	}
	var h events.HistoryResponse
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &h))
	e, text := h.Entries[0], ts.ReadFile(args[1])
	for _, n := range []int64{e.TokensBefore, e.TokensAfter, e.TokensBefore - e.TokensAfter} {
		if want := fmt.Sprintf(" %s tokens", humanize.Comma(n)); !strings.Contains(text, want) {
			ts.Fatalf("there is no%s in:\n%s", want, text)
		}
	}
}
