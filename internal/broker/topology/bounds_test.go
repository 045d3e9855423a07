package topology

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
)

// smallServer is one with room for so many bytes.
func smallServer(t *testing.T, bytes int64) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxStore: bytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	return srv
}

func connectTo(t *testing.T, srv *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return newJS(t, nc)
}

// The bounds of new streams follow from what the server has: both get the same, most of
// it, and some stays free for what reserves nothing.
func TestBoundsFollowTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ room, least, most int64 }{
		{300 << 20, 64 << 20, 120 << 20},
		{4e9, 1.2e9, 1.6e9},
		{10e9, 2.9e9, 4e9},
		{50e9, 14e9, 20e9},
		{200e9, 20 << 30, 20 << 30},
	} {
		js := connectTo(t, smallServer(t, c.room))
		s, err := Ensure(t.Context(), js, Config{})
		if err != nil {
			t.Errorf("room for %d bytes: %v", c.room, err)
			continue
		}
		if b := s.Log.MaxBytes; b < c.least || b > c.most || s.Outcomes.MaxBytes != b {
			t.Errorf("room for %d bytes: bounds are %d and %d, want %d to %d", c.room, b, s.Outcomes.MaxBytes, c.least, c.most)
		}
		if err := Canary(t.Context(), js); err != nil {
			t.Errorf("room for %d bytes: %v", c.room, err)
		}
		if err := EnsureAudit(t.Context(), js); err != nil {
			t.Errorf("room for %d bytes: %v", c.room, err)
		}
		again, err := Ensure(t.Context(), js, Config{CreateBytes: 1 << 30})
		if err != nil || again.Log.MaxBytes != s.Log.MaxBytes || again.Outcomes.MaxBytes != s.Outcomes.MaxBytes {
			t.Errorf("room for %d bytes: the bounds changed: %+v, %v", c.room, again, err)
		}
	}
}

// The audit log takes what explicit bounds have left, down to 8 MiB; without that, its error contains what to do.
func TestAuditTakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ left, least, most int64 }{{64 << 20, 24 << 20, 64 << 20}, {4 << 20, 0, 0}} {
		js := connectTo(t, smallServer(t, 2<<30+c.left))
		if _, err := Ensure(t.Context(), js, Config{MaxBytesLog: 1 << 30, MaxBytesOutcomes: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		err := EnsureAudit(t.Context(), js)
		if c.most == 0 {
			if e, ok := errors.AsType[*StorageError](err); !ok || e.Bytes != leastAudit || !strings.Contains(err.Error(), "create AUDIT") {
				t.Errorf("%d bytes left: error is %v", c.left, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), AuditStream)
		if err != nil {
			t.Fatal(err)
		}
		if b := s.CachedInfo().Config.MaxBytes; b < c.least || b > c.most {
			t.Errorf("%d bytes left: the bound is %d", c.left, b)
		}
	}
}

// A server that is too small for any bound is refused, and the error contains what to do.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	js := connectTo(t, smallServer(t, 100<<20))
	_, err := Ensure(t.Context(), js, Config{})
	if e, ok := errors.AsType[*StorageError](err); !ok || e.Bytes < leastBytes || !strings.Contains(err.Error(), "create SESSIONS") {
		t.Errorf("error is %v", err)
	}
}

// The limits of an account bound the streams too, whatever the server has.
func TestBoundsFollowTheAccount(t *testing.T) {
	t.Parallel()
	js := limited{connectTo(t, smallServer(t, 0)), jetstream.AccountInfo{Tier: jetstream.Tier{
		ReservedStore: 1 << 30, Limits: jetstream.AccountLimits{MaxStore: 11 << 30},
	}}}
	s, err := Ensure(t.Context(), js, Config{})
	if err != nil || s.Log.MaxBytes != 4<<30 || s.Outcomes.MaxBytes != 4<<30 {
		t.Errorf("bounds are %+v, %v", s, err)
	}
	for _, c := range []struct {
		info     jetstream.AccountInfo
		replicas int
		want     int64
	}{
		{jetstream.AccountInfo{Tier: jetstream.Tier{Limits: jetstream.AccountLimits{MaxStore: -1}}}, 1, 0},
		{jetstream.AccountInfo{Tier: jetstream.Tier{Limits: jetstream.AccountLimits{MaxStore: 30 << 30}}}, 3, 4 << 30},
		{jetstream.AccountInfo{Tier: jetstream.Tier{Store: 40 << 30, Limits: jetstream.AccountLimits{MaxStore: 30 << 30}}}, 1, 1},
		{jetstream.AccountInfo{Tier: jetstream.Tier{Limits: jetstream.AccountLimits{MaxStore: -1, StoreMaxStreamBytes: 5 << 30}}}, 1, 2 << 30},
		{jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{"R3": {Limits: jetstream.AccountLimits{MaxStore: 10 << 30}}}}, 3, 4 << 30},
		{jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{"R1": {Limits: jetstream.AccountLimits{MaxStore: 10 << 30}}}}, 3, 0},
	} {
		if got, err := accountLimit(t.Context(), limited{info: c.info}, c.replicas); err != nil || got != c.want {
			t.Errorf("%+v with %d copies: offers %d, %v, want %d", c.info, c.replicas, got, err, c.want)
		}
	}
}

// limited is a server whose account has limits.
type limited struct {
	jetstream.JetStream
	info jetstream.AccountInfo
}

func (l limited) AccountInfo(context.Context) (*jetstream.AccountInfo, error) { return &l.info, nil }

// A bound that is requested is set, in new streams and in existing ones; one that a
// stream has outgrown is refused.
func TestBoundsRequested(t *testing.T) {
	t.Parallel()
	js := connectTo(t, smallServer(t, 10e9))
	for _, c := range []struct{ log, out int64 }{{4 << 30, 1 << 30}, {1 << 30, 4 << 30}, {5 << 30, 3 << 30}} {
		s, err := Ensure(t.Context(), js, Config{MaxBytesLog: c.log, MaxBytesOutcomes: c.out})
		if err != nil || s.Log.MaxBytes != c.log || s.Outcomes.MaxBytes != c.out {
			t.Errorf("requested %+v: %+v, %v", c, s, err)
		}
	}
	_, err := Ensure(t.Context(), js, Config{MaxBytesLog: 20 << 30})
	if e, ok := errors.AsType[*StorageError](err); !ok || e.Bytes != 20<<30 || !strings.Contains(err.Error(), "update SESSIONS") {
		t.Errorf("error is %v", err)
	}
	if _, err := js.Publish(t.Context(), "session.turn.t.s", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(t.Context(), js, Config{MaxBytesLog: 1 << 20}); err == nil || !strings.Contains(err.Error(), "SESSIONS: it holds 1.0 MiB") {
		t.Errorf("error is %v", err)
	}
}

// Workers that start together, each with another wish, agree, wherever one of them looks
// for a stream before another one creates it and finds the server full after that.
func TestEnsureLooksAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		stale string // the stream that is not yet there when it is looked for
		top   Config
	}{
		{"log", LogStream, Config{}},
		{"outcomes", OutcomesStream, Config{}},
		{"other bounds", OutcomesStream, Config{MaxBytesLog: 4 << 30, MaxBytesOutcomes: 5 << 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := smallServer(t, 10e9)
			if _, err := Ensure(t.Context(), connectTo(t, srv), Config{MaxBytesLog: 4 << 30, MaxBytesOutcomes: 4 << 30}); err != nil {
				t.Fatal(err)
			}
			js := &staleLook{JetStream: connectTo(t, srv), name: c.stale}
			s, err := Ensure(t.Context(), js, c.top)
			if c.top.MaxBytesOutcomes == 5<<30 { // which the server has, once the stream is found
				if err != nil || s.Outcomes.MaxBytes != 5<<30 {
					t.Errorf("streams are %+v, %v", s, err)
				}
				return
			}
			if err != nil || s.Log.MaxBytes != 4<<30 || s.Outcomes.MaxBytes != 4<<30 {
				t.Errorf("streams are %+v, %v", s, err)
			}
		})
	}
}

// staleLook is a server that did not have a stream when it was looked for first.
type staleLook struct {
	jetstream.JetStream
	name   string
	looked bool
}

func (s *staleLook) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if name == s.name && !s.looked {
		s.looked = true
		return nil, jetstream.ErrStreamNotFound
	}
	return s.JetStream.Stream(ctx, name)
}

// Eight workers start together on an empty server without much room: all of them find
// the same streams.
func TestEnsureTogether(t *testing.T) {
	t.Parallel()
	for range 3 {
		srv := smallServer(t, 50e9)
		var (
			all   sync.WaitGroup
			mu    sync.Mutex // guards found
			found = map[int64]int{}
		)
		for p := range 8 {
			nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			js, err := jetstream.New(nc) // its timeout: a request that is lost is made again
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				var s *Streams
				err := jsapi.AwaitServer(t.Context(), nil, func() (err error) { // as a worker starts
					s, err = Ensure(t.Context(), js, Config{Partitions: p + 1})
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				found[s.Outcomes.MaxBytes]++
			})
		}
		all.Wait()
		if len(found) != 1 {
			t.Errorf("bounds of OUTCOMES are %v", found)
		}
	}
}

// A worker that crashes between the two streams leaves a log with room for both, which the
// next one gives back.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	js := connectTo(t, smallServer(t, 10e9))
	top := Config{CreateBytes: 3 << 30}
	c := top.logConfig()
	c.MaxBytes, c.Metadata = roomFor(3<<30), map[string]string{metaMaxBytes: "3221225472", "owner": "me"}
	if _, err := js.CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s, err := Ensure(t.Context(), js, Config{})
	if err != nil || s.Log.MaxBytes != 3<<30 || s.Outcomes.MaxBytes != 3<<30 {
		t.Errorf("bounds are %+v, %v", s, err)
	}
	log, err := js.Stream(t.Context(), LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if m := log.CachedInfo().Config.Metadata; m[metaMaxBytes] != "" || m["owner"] != "me" {
		t.Errorf("metadata is %v", m)
	}
}

func newJS(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
