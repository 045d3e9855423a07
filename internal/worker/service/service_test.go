package service

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
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

// storing is a server that lost its answer to a first try, and still stores the event.
type storing struct {
	jetstream.JetStream
	answers []error // to the tries
}

func (s *storing) PublishMsg(context.Context, *nats.Msg, ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if len(s.answers) == 0 {
		return &jetstream.PubAck{Sequence: 7, Duplicate: true}, nil
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return nil, err
}

// A second try that finds the first one under way is repeated until its sequence is known.
func TestSendAgain(t *testing.T) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: server})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	inProcess := &jetstream.APIError{Code: 400, ErrorCode: 10158, Description: "duplicate message id is in process"}
	s := &Service{config: Config{Publish: &storing{JetStream: js, answers: []error{nats.ErrTimeout, inProcess, inProcess}}}}
	e, err := stream.NewEvent(events.KindTurn, events.Address{Tenant: "default", Session: "s1"}, "id", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	seq, duplicate, err := s.send(t.Context(), e)
	if seq != 7 || !duplicate || err != nil {
		t.Errorf("sequence %d, duplicate %t, %v", seq, duplicate, err)
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
