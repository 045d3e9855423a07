// Command go is an agent of 24 turns on plain nats.go, whose model is a fake one. It
// prints what it holds at the end. session.go is what to copy of it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const turns = 24

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	nc, err := nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	model := map[string]any{"provider": "anthropic", "name": "claude-sonnet-4-20250514", "context_window": 16000}
	s := &session{js: js, id: "example-go-" + rand.Text(), settings: map[string]any{"model": model}}
	// An agent that goes on sends its history again, with replaces_from 1.
	if err := s.subscribe(func(why string) { log.Fatal("refused: ", why) }); err != nil {
		return err
	}
	for turn := 1; turn <= turns; turn++ {
		if err := ask(ctx, s, turn); err != nil {
			return err
		}
	}
	return show(ctx, s)
}

// ask is one turn: the model gets the history, and the turn adds prompt and answer to it.
func ask(ctx context.Context, s *session, turn int) error {
	history, err := s.history()
	if err != nil {
		return err
	}
	prompt := message("user", fmt.Sprintf("Describe part %d.", turn))
	history = append(history, prompt)
	if !valid(history, turn) {
		return fmt.Errorf("this is no history: %s", history)
	}
	return s.publish(ctx, prompt, think(history))
}

// think is a fake model with long answers. A real one takes seconds.
func think(history []json.RawMessage) json.RawMessage {
	time.Sleep(50 * time.Millisecond)
	return message("assistant", fmt.Sprintf("To %d messages: ", len(history))+strings.Repeat("There is a lot to say about it. ", 100))
}

func message(role, text string) json.RawMessage {
	m, _ := json.Marshal(map[string]string{"role": role, "content": text}) // strings always can
	return m
}

// show prints what is held. Your agent has no reason to wait; this one wants something
// to show.
func show(ctx context.Context, s *session) error {
	for end := time.Now().Add(10 * time.Second); s.held.Generation == 0 && time.Now().Before(end); {
		if _, err := s.history(); err != nil {
			return err
		}
	}
	history, err := s.history()
	if err != nil {
		return err
	}
	held := s.held
	stored, err := s.resync(ctx)
	if err != nil {
		return err
	}
	line, err := json.Marshal(struct {
		Turns      int  `json:"turns"`
		Generation int  `json:"generation"`
		Stored     int  `json:"stored"` // the newest generation in OUTCOMES
		Messages   int  `json:"messages"`
		Valid      bool `json:"history_valid"`
	}{len(s.turns), held.Generation, stored, len(history), valid(history, turns)})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if held.Generation == 0 {
		return errors.New("no compaction was published")
	}
	return nil
}

var prompted = regexp.MustCompile(`^Describe part (\d+)\.$`)

// valid reports whether user and assistant alternate, and nothing new is missing or
// duplicate.
func valid(history []json.RawMessage, last int) bool {
	var parts []int
	for i, m := range history {
		var got struct {
			Role    string
			Content any
		}
		if json.Unmarshal(m, &got) != nil || got.Role != []string{"user", "assistant"}[i%2] {
			return false
		}
		if found := prompted.FindStringSubmatch(fmt.Sprint(got.Content)); found != nil {
			part, _ := strconv.Atoi(found[1]) // digits
			parts = append(parts, part)
		}
	}
	n := len(parts)
	ordered := slices.IsSorted(parts) && len(slices.Compact(slices.Clone(parts))) == n
	return ordered && n > 0 && parts[n-1] == last && (last == 1 || n > 1 && parts[n-2] == last-1)
}
