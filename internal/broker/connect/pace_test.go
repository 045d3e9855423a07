package connect

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// hashing is a server's check of passwords: each costs cost of a processor, and all under way share one.
type hashing struct {
	cost         time.Duration
	begun, under atomic.Int64
}

func (h *hashing) Check(server.ClientAuthentication) bool {
	const step = 10 * time.Millisecond
	h.begun.Add(1)
	h.under.Add(1)
	defer h.under.Add(-1)
	for done := time.Duration(0); done < h.cost; done += step / time.Duration(h.under.Load()) {
		time.Sleep(step)
	}
	return true
}

// Connections of three workers, of five each, come back after a restart of a server that is busy with hashes of
// passwords. If all try at once, each try lasts longer than nats.go waits for it, and none succeeds.
func TestReconnectToBusyServer(t *testing.T) {
	const workers, each = 3, 5
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		checks := &hashing{}
		start := func() *server.Server {
			srv, err := server.NewServer(&server.Options{DontListen: true, CustomClientAuthentication: checks, NoLog: true, NoSigs: true})
			if err != nil {
				t.Fatal(err)
			}
			srv.Start()
			return srv
		}
		first := start()
		back := make(chan string, workers*each)
		at := &inProcess{}
		at.Store(first)
		for range workers {
			pace := &Pace{}
			for range each {
				nc, err := Open(t.Context(), Options{InProcess: at, Pace: pace, OnReconnect: func(url string) { back <- url }})
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
			}
		}
		checks.cost = 400 * time.Millisecond
		before := checks.begun.Load()
		second := start()
		defer second.WaitForShutdown()
		defer second.Shutdown()
		at.Store(second)
		first.Shutdown()
		for range workers * each {
			select {
			case <-back:
			case <-time.After(time.Minute):
				t.Fatalf("%d checks of passwords in a minute, and not all are back", checks.begun.Load()-before)
			}
		}
		if n := checks.begun.Load() - before; n > 4*workers*each {
			t.Errorf("%d checks of passwords for %d connections", n, workers*each)
		}
	})
}

// emptyPools removes the timers that nats.go keeps: one of this bubble is of no use outside, nor the other way round.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// inProcess is the server that runs at present.
type inProcess struct{ atomic.Pointer[server.Server] }

func (p *inProcess) InProcessConn() (net.Conn, error) { return p.Load().InProcessConn() }
