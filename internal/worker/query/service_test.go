package query

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

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
