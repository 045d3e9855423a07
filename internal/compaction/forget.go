package compaction

import "compactd/internal/events"

// forget tells that a session counts as never published. Neither is it looked up
// nor anything of it told, a request that waits included: once the session is
// erased, the same event finds no turns before it, and must be answered the same.
func (d *decision) forget() {
	d.emit(events.KindForgotten, func(h events.Header) any {
		return &events.Forgotten{Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Seq: uint64(d.event.Seq)}
	})
}
