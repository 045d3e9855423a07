// Package harness is what the programs that measure share: an embedded server with the
// two streams, a worker on it as cmd/worker starts one, and the arithmetic of figures.
//
//	s, err := harness.Start(ctx, dir, "bench")
//	defer s.Close()
//	w, err := s.Serve(ctx, worker.Config{Compaction: config, Summarizer: extract.New()})
//	err = errors.Join(w.Await(ctx, w.Ready()), w.Stop())
//
// # Concurrency
//
// A [Server] may be used by any number of goroutines.
//
// # On failure
//
// A wait longer than [Limit] is [ErrSlow].
package harness
