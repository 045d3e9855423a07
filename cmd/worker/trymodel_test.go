package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// An agent that sets its base URL alone sees compactions, and none of its calls is refused.
func TestTryModel(t *testing.T) {
	var f flags
	if _, err := parser(&f, "json").Parse([]string{"try", "--model", "127.0.0.1:-1", "--window", "4096"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- f.Try.run(ctx, &f, zerolog.Nop(), write)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	url := ""
	for url == "" && lines.Scan() {
		if m := regexp.MustCompile(`^ +OPENAI_BASE_URL=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	printed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
		}
		printed <- all.String()
	}()
	history := []map[string]string{}
	for range 20 {
		history = append(history, map[string]string{"role": "user", "content": "And then?"})
		history = append(history, map[string]string{"role": "assistant", "content": askModel(t, url, history)})
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := <-printed; !strings.Contains(text, "compacted: generation ") || !strings.Contains(text, "call 20: ") || strings.Contains(text, "refused") {
		t.Error(text)
	}
}

// askModel is a call of an agent.
func askModel(t *testing.T, url string, history []map[string]string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "any", "messages": history})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || len(out.Choices) == 0 {
		t.Fatal(answer.Status, err)
	}
	return out.Choices[0].Message.Content
}
