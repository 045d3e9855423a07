package agents

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/worker/service"
)

// BenchmarkReadTurn reads a turn of 64 KiB, as the listener does before it publishes it.
func BenchmarkReadTurn(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat("A line of a file. ", 57) + `"},`
	body := `{"id":"t","turn":1,"messages":[` + strings.TrimSuffix(strings.Repeat(message, 64), ",") + `]}`
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(body))
		in := &service.Event{Kind: events.KindTurn}
		if err := read(httptest.NewRecorder(), r, verbs[0], in); err != nil || in.ID != "t" {
			b.Fatal(err)
		}
	}
}
