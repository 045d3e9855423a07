package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// A session is erased only when its name is typed.
func TestConfirmed(t *testing.T) {
	for typed, want := range map[string]bool{
		"chat-4711\n": true, "chat-4711\r\n": true, "chat-4711": true,
		"": false, "\n": false, "y\n": false, "yes\n": false, "acme.chat-4711\n": false, "chat-471\n": false,
	} {
		var prompt strings.Builder
		if got := confirmed(t.Context(), strings.NewReader(typed), io.Writer(&prompt), "Is acme.chat-4711 erased? ", "chat-4711"); got != want || !strings.Contains(prompt.String(), "acme.chat-4711") {
			t.Errorf("%q: %v, after %q", typed, got, prompt.String())
		}
	}
}

// Ctrl-C at the prompt counts as no.
func TestConfirmCancelled(t *testing.T) {
	in, typing := io.Pipe() // there is no input
	defer typing.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if confirmed(ctx, in, io.Discard, "Is acme.chat-4711 erased? ", "chat-4711") {
		t.Error("confirmed without input")
	}
}
