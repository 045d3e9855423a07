package inspect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"compactd/internal/broker/topology"
	"compactd/internal/disk"
	"compactd/internal/kv"
	"compactd/internal/ops/units"
)

// directories checks who may enter those with conversations.
func (d *doctor) directories() {
	err := disk.Private(d.Data, filepath.Join(d.Data, "nats"), filepath.Join(d.Data, "ledgers"))
	if exposed, ok := errors.AsType[*disk.ExposedError](err); ok {
		d.problem("directory", strings.TrimSuffix(exposed.Hint(), "."), "%v", err)
	} else if err != nil {
		d.problem("directory", "", "%v", err)
	}
}

// disk checks the room for ledgers, and for the streams of an embedded server.
func (d *doctor) disk(s *topology.Streams) {
	free, size, err := disk.Space(d.Data)
	switch {
	case err != nil:
		d.problem("disk", "may this user read the directory?", "%v", err)
		return
	case disk.Scarce(free, size):
		d.problem("disk", "free some space; an embedded server then needs a restart", "the disk of %s has too little room: %s of %s are free", d.Data, units.Bytes(free), units.Bytes(size))
	default:
		d.ok("disk", "%s of %s are free for %s", units.Bytes(free), units.Bytes(size), d.Data)
	}
	d.figures(Figures{FreeBytes: free, SizeBytes: size})
	if _, err := os.Stat(filepath.Join(d.Data, "nats")); s == nil || err != nil {
		return // the streams are on another disk
	}
	var grow uint64
	for _, x := range []topology.StreamState{s.Log, s.Outcomes} {
		grow += uint64(max(x.MaxBytes, 0)) - min(x.Bytes, uint64(max(x.MaxBytes, 0)))
	}
	if grow > free {
		d.note("disk", "lower their bounds, or watch the disk", "the streams may grow by %s: on this disk it is full before they are", units.Bytes(grow))
		d.figures(Figures{Bytes: grow, FreeBytes: free})
	}
}

// files checks each ledger file that no worker has open.
func (d *doctor) files(s *topology.Streams) {
	ledgers := filepath.Join(d.Data, "ledgers")
	found, _ := filepath.Glob(filepath.Join(ledgers, "p*.db")) // fails on a bad pattern only
	if len(found) == 0 {
		d.note("files", "", "no ledger files in %s", ledgers)
		return
	}
	slices.Sort(found)
	sound, inUse, foreign := 0, 0, 0
	for _, at := range found {
		store, _, err := kv.Open(kv.Options{Path: at, ReadOnly: true, LockWait: fileWait})
		switch {
		case errors.Is(err, kv.ErrInUse):
			inUse++
		case errors.Is(err, fs.ErrNotExist):
			sound++ // made, and never written
		case err != nil:
			d.problem("files", "nothing to do: the next start quarantines it and rebuilds it from the log", "%v", err)
		default:
			switch m := store.Position(); {
			case s != nil && m != kv.Position{} && m.LogCreated != s.Log.Created.UnixNano():
				foreign++
			case d.fits(at, m, s):
				sound++
			}
			_ = store.Close() // it was only read
		}
	}
	if foreign > 0 {
		d.problem("files", "name the directory of a worker of this server with --data; if it is that, the next start quarantines them and rebuilds them from the log",
			"%s in %s: of another log than the server's", units.Count(foreign, "ledger file"), ledgers)
	}
	if sound > 0 {
		d.ok("files", "%d ledger files are sound", sound)
	}
	if inUse > 0 {
		d.note("files", "stop the worker to have them checked; it checks them itself when it starts", "%d ledger files are in use by a worker: not checked", inUse)
	}
	if bad, _ := filepath.Glob(filepath.Join(ledgers, "p*.db.bad-*")); len(bad) > 0 {
		d.note("files", "keep them for a report, or delete them", "%d files were quarantined before", len(bad))
	}
}

// fits compares a sound file with the log, when that is known.
func (d *doctor) fits(at string, m kv.Position, s *topology.Streams) bool {
	switch {
	case s == nil || m == kv.Position{}:
		return true
	case m.Cursor > s.Log.Last:
		d.problem("files", "nothing to do: the next start quarantines it and rebuilds it from the log", "%s is at %d, the log ends at %d", at, m.Cursor, s.Log.Last)
	default:
		return true
	}
	return false
}
