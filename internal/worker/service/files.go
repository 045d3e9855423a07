package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
)

// maxPathBytes bounds a path that is returned.
const maxPathBytes = 4 << 10

// files lists the files that a session has read and changed. The ledger has everything but the
// paths, which are read from the log.
func (s *Service) files(ctx context.Context, in *events.FilesRequest) (*events.FilesResponse, error) {
	out := &events.FilesResponse{V: events.Version, Files: []events.File{}, Page: max(in.Page, 1), Pages: 1}
	o := &originals{nc: s.config.Answers, address: in.Address()}
	var all []compaction.FileUsage
	if err := limit.Of(ctx).ComputeOver(ctx, 0); err != nil {
		return nil, orEnded(ctx, err)
	}
	if _, _, err := s.inspect(o.address, func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); out.Known {
			all, o.format, out.Through = l.Files(s.config.Partitions.Compaction()), l.Format(), l.Through()
		}
	}); err != nil {
		return nil, err
	}
	out.Pages = max(1, (int64(len(all))+events.FilesPerPage-1)/events.FilesPerPage)
	if !out.Known {
		out.Page = 1
	}
	if out.Page > out.Pages {
		return nil, events.NewInvalid(events.CodeOutOfRange, "page", fmt.Sprintf("must be between 1 and %d", out.Pages))
	}
	from := min(int(out.Page-1)*events.FilesPerPage, len(all))
	all = all[from:min(from+events.FilesPerPage, len(all))]
	for len(all) > 0 {
		n := ofTurns(all, searchChunk)
		if err := o.name(ctx, all[:n], out); err != nil {
			return nil, orEnded(ctx, err)
		}
		all = all[n:]
	}
	return out, nil
}

// ofTurns returns the number of leading files that belong to the next turns. The files of a turn
// follow each other.
func ofTurns(files []compaction.FileUsage, turns int) int {
	for i := 1; i < len(files); i++ {
		if files[i].Seq != files[i-1].Seq {
			if turns--; turns == 0 {
				return i
			}
		}
	}
	return len(files)
}

// name adds files to an answer, with the paths in their turns. It reads each turn and each message
// once: their files follow each other.
func (o *originals) name(ctx context.Context, files []compaction.FileUsage, out *events.FilesResponse) error {
	seqs := make([]uint64, len(files))
	for i := range files {
		seqs[i] = uint64(files[i].Seq)
	}
	seqs = slices.Compact(seqs)
	turns, _, err := o.read(ctx, seqs)
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		turns = make([]*events.Turn, len(seqs))
	} else if err != nil {
		return err
	}
	var m dialect.Message
	turn := 0
	for i := range files {
		f := &files[i]
		next := i > 0 && f.Seq != files[i-1].Seq
		if next {
			turn++
		}
		if i == 0 || next || f.Index != files[i-1].Index {
			m = o.message(turns[turn], f.Index)
		}
		path := pathOf(f, &m)
		if path == "" || len(path) > maxPathBytes {
			out.Unnamed++
			continue
		}
		kind := events.FileRead
		if f.Changes > 0 {
			kind = events.FileChanged
		}
		out.Files = append(out.Files, events.File{
			Path: path, Kind: kind, Turns: [2]int64{f.First, f.Last}, Reads: f.Reads, Changes: f.Changes, Restorable: f.Restorable,
		})
	}
	return nil
}

// message reads a message of a turn; it has no parts if the turn does not have it.
func (o *originals) message(t *events.Turn, index int) dialect.Message {
	if t == nil || index >= len(t.Messages) {
		return dialect.Message{}
	}
	m, err := o.format.Read(t.Messages[index])
	if err != nil {
		return dialect.Message{}
	}
	return m
}

// pathOf returns the path of a file in its message, or "".
func pathOf(f *compaction.FileUsage, m *dialect.Message) string {
	if f.Part >= len(m.Parts) {
		return ""
	}
	path, _, _ := m.Parts[f.Part].File()
	if f.Names(path) {
		return path
	}
	return ""
}
