package workertest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/testkit/freeport"
)

// FreePort finds an address that a process can use again after a restart.
func FreePort(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Dial opens a connection that reconnects without limit, after short pauses.
func Dial(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(10*time.Millisecond, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}
