// Command go is a whole agent on plain nats.go: it publishes its turns, and takes
// the histories it is told. Its model is a fake one.
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
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const turns = 24

type agent struct {
	js      jetstream.JetStream
	told    *nats.Subscription // session.compacted.default.<session>
	session string

	prefix     []json.RawMessage   // the history told last, up to the turn through
	own        [][]json.RawMessage // what each turn after it appended
	turn       int                 // the last one published
	through    int
	generation int
}

// publish sends what was appended since the last turn, as the next turn.
func (a *agent) publish(ctx context.Context, appended ...json.RawMessage) error {
	id := rand.Text() // one for each turn, the same when it is sent again
	payload, err := json.Marshal(map[string]any{
		"id": id, "turn": a.turn + 1, "generation": a.generation, "messages": appended,
		"model": map[string]any{"provider": "anthropic", "name": "claude-sonnet-4-20250514", "context_window": 16000},
	})
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ { // no answer: perhaps it is stored, perhaps not
		_, err = a.js.Publish(ctx, "session.turn.default."+a.session, payload, jetstream.WithMsgID(id))
		if err == nil {
			break
		} else if attempt == 5 || ctx.Err() != nil {
			return fmt.Errorf("publish turn %d: %w", a.turn+1, err)
		}
		time.Sleep(time.Second)
	}
	a.turn++
	a.own = append(a.own, appended)
	return nil
}

// take applies what was told since the last turn border.
func (a *agent) take() error {
	for {
		m, err := a.told.NextMsg(time.Millisecond)
		if errors.Is(err, nats.ErrTimeout) {
			return nil // nothing more: never wait for it
		} else if err != nil {
			return err
		} else if _, err = a.apply(m.Data); err != nil {
			return err
		}
	}
}

// apply takes a history in place of all turns up to the one it stands for, and
// returns its generation.
func (a *agent) apply(data []byte) (int, error) {
	var ev struct {
		Generation int
		Compacted  bool
		Through    struct{ Turn int }
		Messages   []json.RawMessage
	}
	if err := json.Unmarshal(data, &ev); err != nil {
		return 0, err
	}
	if ev.Compacted && ev.Messages != nil && ev.Generation > a.generation {
		a.prefix, a.own = ev.Messages, a.own[ev.Through.Turn-a.through:]
		a.generation, a.through = ev.Generation, ev.Through.Turn
	}
	return ev.Generation, nil
}

// history is what goes into the next call of the model.
func (a *agent) history() []json.RawMessage {
	return slices.Concat(a.prefix, slices.Concat(a.own...))
}

// catchUp applies the newest outcome that is stored, and returns its generation.
func (a *agent) catchUp(ctx context.Context) (int, error) {
	// doc:begin stored
	outcomes, err := a.js.Stream(ctx, "OUTCOMES")
	if err != nil {
		return 0, err
	}
	m, err := outcomes.GetLastMsgForSubject(ctx, "out.*.compacted.default."+a.session)
	// doc:end stored
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil // nothing was told yet
	} else if err != nil {
		return 0, err
	}
	return a.apply(m.Data)
}

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
	a := &agent{js: js, session: "example-go-" + rand.Text()}
	if a.told, err = nc.SubscribeSync("session.compacted.default." + a.session); err != nil {
		return err
	}
	// An acknowledged turn may still be refused. An agent that goes on would resync.
	if _, err = nc.Subscribe("session.rejected.default."+a.session, func(m *nats.Msg) {
		log.Fatalf("refused: %s", m.Data)
	}); err != nil {
		return err
	}
	for n := range turns {
		if err := a.take(); err != nil {
			return err
		}
		prompt := message("user", fmt.Sprintf("Tell me about part %d.", n+1))
		if err := a.publish(ctx, prompt, think(append(a.history(), prompt))); err != nil {
			return err
		}
	}
	// Your agent has no reason to wait. This one wants something to show.
	for end := time.Now().Add(10 * time.Second); a.generation == 0 && time.Now().Before(end); {
		if err := a.take(); err != nil {
			return err
		}
	}
	stored, err := a.catchUp(ctx)
	if err != nil {
		return err
	}
	history := a.history()
	line, err := json.Marshal(struct {
		Turns      int  `json:"turns"`
		Generation int  `json:"generation"`
		Stored     int  `json:"stored"` // the newest generation in OUTCOMES
		Messages   int  `json:"messages"`
		Valid      bool `json:"history_valid"`
	}{a.turn, a.generation, stored, len(history), valid(history)})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if a.generation == 0 {
		return errors.New("no compaction was told")
	}
	return nil
}

// think stands for a model that has much to say. A real one takes seconds.
func think(history []json.RawMessage) json.RawMessage {
	time.Sleep(50 * time.Millisecond)
	return message("assistant", fmt.Sprintf("To %d messages: ", len(history))+strings.Repeat("There is a lot to say about it. ", 100))
}

func message(role, text string) json.RawMessage {
	m, _ := json.Marshal(map[string]string{"role": role, "content": text}) // strings always can
	return m
}

// valid reports whether user and assistant speak in turns, the user first.
func valid(history []json.RawMessage) bool {
	for i, m := range history {
		var said struct{ Role string }
		if json.Unmarshal(m, &said) != nil || said.Role != []string{"user", "assistant"}[i%2] {
			return false
		}
	}
	return len(history) > 0
}
