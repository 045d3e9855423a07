package main

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"
)

// announceStop logs when a signal stops the worker, and ends the process if the stop takes
// longer than --drain-timeout, as on a disk that does not answer: what is not committed is
// decided again at the next start. The caller calls done when the stop has ended.
func (f *flags) announceStop(ctx context.Context, log zerolog.Logger) (done func()) {
	ended := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		log.Info().Str("within", f.DrainTimeout.String()).Msg("stopping")
		select {
		case <-ended:
		case <-time.After(f.DrainTimeout):
			log.Error().Str("hint", "Nothing is lost: the next start decides again what was not committed.").Msg("the stop ran out of time")
			os.Exit(1)
		}
	})
	return func() { unwatch(); close(ended) }
}
