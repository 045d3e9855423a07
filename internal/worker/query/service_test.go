package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

type defect struct{}

func (defect) MarshalJSON() ([]byte, error) { panic("a defect") }

// A panic while an answer is written is an error of this answer.
func TestEncodePanics(t *testing.T) {
	data, err := (&Service{}).encode(t.Context(), defect{})
	if err == nil || data != nil {
		t.Errorf("%s, %v", data, err)
	}
}

// A refusal of the server of the streams is no defect of the worker.
func TestRefusalOfTheServer(t *testing.T) {
	full := fmt.Errorf("find the end: %w", &jetstream.APIError{Code: 400, ErrorCode: 10026, Description: "maximum consumers limit reached"})
	for _, err := range []error{full, nats.ErrTimeout} {
		if got := Refusal(err).Code; got != events.CodeUnavailable {
			t.Errorf("%v is %s", err, got)
		}
	}
}

type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (late) Close() error             { return nil }

// Bodies that are too slow or encoded have statuses and codes of their own.
func TestRefusedBodies(t *testing.T) {
	for want, r := range map[int]*http.Request{
		http.StatusRequestTimeout:       {ContentLength: -1, Body: late{}},
		http.StatusUnsupportedMediaType: {ContentLength: -1, Body: http.NoBody, Header: http.Header{"Content-Encoding": {"gzip"}}},
	} {
		w := httptest.NewRecorder()
		if _, err := ReadBody(w, r, limit.Body{Most: 100}); err != nil {
			WriteError(w, Refusal(err))
		}
		if w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
}
