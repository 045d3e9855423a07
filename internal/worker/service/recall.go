package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// TurnMemory is the memory to read a large turn: as stored, as decoded, and as answered.
const TurnMemory = limit.PerByte * events.MaxTurnBytes

const (
	// searchChunk is the number of small turns that are read at once, about searchBytes.
	searchChunk = 8
	searchBytes = 256 << 10
	// maxSearched limits the bytes of turns that one search reads, a second's work at worst; then it returns
	// the place to continue from. The last chunk is read whole. A turn counts as turnCost at least.
	maxSearched = 16 << 20
	turnCost    = 4 << 10
	// excerptBefore and excerptAfter are the bytes around the beginning of a match.
	excerptBefore, excerptAfter = 80, 240
)

// recall answers with originals of a session (C8), or with the places of a text. For a turn that the session
// lacks it reads the session that it branched off, in its state of then.
func (s *Service) recall(ctx context.Context, in *events.RecallRequest) (any, error) {
	if in.AsOf == nil { // otherwise it is for a session that branched off, which is counted already
		observe.Call(s.config.Listener.Recalled, observe.Recalled{Address: in.Address(), Search: in.Text != ""})
	}
	if err := s.MayRecall(in.Tenant); err != nil {
		return nil, err
	}
	o, err := s.originals(ctx, in)
	switch {
	case err != nil:
		return nil, err
	case in.Ancestor != "" && o.parent == nil:
		return nil, events.NewInvalid(events.CodeUnknownTurn, "ancestor", "is no session that this one branched off")
	case in.Text != "":
		return s.search(ctx, o, in)
	default:
		return s.turn(ctx, o, in)
	}
}

// MayRecall refuses originals of a private tenant. Their replacements stay in view.
func (s *Service) MayRecall(tenant string) error {
	if s.Compaction().For(tenant).Limits.Private {
		return errPrivate
	}
	return nil
}

var errPrivate = events.Refuse(events.CodeForbidden, "the policy of the tenant keeps its content out of recall", "Work with what is in view; the operator sets limits.private.")

// Reading calls fn with a place for an answer that reads the log, and without a processor. The parent of a branch
// is read without a place: an operation holds none that its own later steps wait for.
func Reading[A any](ctx context.Context, fn func() (A, error)) (A, error) {
	op := limit.Of(ctx)
	op.Rest()
	return held(ctx, op, limit.Reads, fn)
}

// turn is a turn of the session, or of an ancestor.
func (s *Service) turn(ctx context.Context, o *originals, in *events.RecallRequest) (*events.RecallResponse, error) {
	if in.Ancestor != "" || in.Turn > int64(len(o.seqs)) && o.parent != nil {
		out, err := askParent[events.RecallResponse](ctx, s, o, in)
		if err == nil && out.Known {
			out.Ancestor = cmp.Or(out.Ancestor, o.parent.Session)
		}
		if beyond := err == nil && !out.Known || err != nil && Refusal(err).Code == events.CodeUnknownTurn; !beyond || in.Ancestor != "" {
			return out, err
		}
	}
	return o.turn(ctx, in, min(maxAnswerBytes, connect.MaxPayload(s.config.Read)-answerMargin))
}

// search goes through the session, then through its ancestors.
func (s *Service) search(ctx context.Context, o *originals, in *events.RecallRequest) (out *events.SearchResponse, err error) {
	out = &events.SearchResponse{V: events.Version, Known: o.known, Hits: []events.Hit{}}
	rest := *in
	if in.Ancestor == "" {
		out, err = o.searchOwn(ctx, in)
		if err != nil || out.Before != nil || o.parent == nil {
			return out, err
		}
		rest.Before, rest.Limit = nil, cmp.Or(in.Limit, events.DefaultHits)-int64(len(out.Hits))
		if rest.Limit == 0 {
			out.Ancestor, out.Before = o.parent.Session, &events.Position{Turn: o.parent.Turn + 1}
			return out, nil
		}
	}
	more, err := askParent[events.SearchResponse](ctx, s, o, &rest)
	if err != nil {
		return nil, err
	}
	for _, h := range more.Hits {
		h.Ancestor = cmp.Or(h.Ancestor, o.parent.Session)
		out.Hits = append(out.Hits, h)
	}
	out.Gone += more.Gone
	if out.Before = more.Before; out.Before != nil {
		out.Ancestor = cmp.Or(more.Ancestor, o.parent.Session)
	}
	return out, nil
}

// askParent sends a request to the session that this one branched off. Its turns are older in the log than the
// turn that names it, so no session is its own ancestor.
func askParent[A any](ctx context.Context, s *Service, of *originals, in *events.RecallRequest) (*A, error) {
	request := *in
	request.Session, request.AsOf = of.parent.Session, &events.AsOf{Turn: of.parent.Turn, Seq: uint64(of.parent.Seq), Depth: 1}
	if in.AsOf != nil {
		request.AsOf.Depth += in.AsOf.Depth
	}
	if request.Ancestor == request.Session {
		request.Ancestor = ""
	}
	c := callOf(s, &request, (*Service).recall)
	return received[A](s.following(ctx, c, false, func() (any, error) {
		if !s.elsewhere(c) {
			return c.answer(ctx)
		}
		data, err := c.payload()
		if err != nil {
			return nil, err
		}
		o := s.find("recall")
		out, err := s.ownerAnswer(ctx, o, c, data)
		return counted(ctx, o, out, err)
	}))
}

// originals are the turns of a session as the log has them.
type originals struct {
	nc      *nats.Conn
	address events.Address
	known   bool
	format  events.Format
	seqs    []measure.Seq      // of turn 1 and those after it
	parent  *compaction.Forked // the place where the session branched off, or nil
}

// originals lists the accepted turns of a session, up to the last committed one, or as of a branch.
func (s *Service) originals(ctx context.Context, in *events.RecallRequest) (*originals, error) {
	a := in.Address()
	o := &originals{nc: s.config.Answers, address: a}
	p, at, err := s.inspect(a, func(l *compaction.Ledger) {
		o.known, o.format, o.seqs, o.parent = l.HasTurns(), l.Format(), l.TurnSeqs(), l.ForkedFrom()
	})
	if err != nil {
		return nil, err
	}
	if then := in.AsOf; then != nil {
		o.seqs = o.seqs[:min(int64(len(o.seqs)), then.Turn)]
		if at := slices.IndexFunc(o.seqs, func(seq measure.Seq) bool { return uint64(seq) >= then.Seq }); at >= 0 {
			o.seqs = o.seqs[:at]
		}
	}
	if f := o.parent; f != nil && (f.Turn == 0 || in.AsOf != nil && (uint64(f.Seq) >= in.AsOf.Seq || in.AsOf.Depth >= events.MaxForks)) {
		o.parent = nil
	}
	return o, s.awaitCommitted(ctx, p, a, at)
}

// turn returns a message of a turn, or one page of all of them. Their memory counts until the operation ends.
func (o *originals) turn(ctx context.Context, in *events.RecallRequest, most int) (*events.RecallResponse, error) {
	out := &events.RecallResponse{V: events.Version, Known: o.known, Page: 1, Pages: 1, Messages: []codec.Raw{}}
	if !o.known {
		return out, nil
	}
	last := int64(len(o.seqs))
	if in.Turn > last {
		return nil, events.NewInvalid(events.CodeUnknownTurn, "turn", fmt.Sprintf("is beyond %d, the last that was taken", last))
	}
	seq := uint64(o.seqs[in.Turn-1])
	op, size := limit.Of(ctx), 0
	if err := op.Remember(ctx, TurnMemory); err != nil {
		return nil, orEnded(ctx, err)
	}
	turns, err := Reading(ctx, func() (turns []*events.Turn, err error) {
		turns, size, err = o.read(ctx, []uint64{seq})
		return turns, err
	})
	op.Shrink(int64(size) * limit.PerByte)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	out.Format, out.Turn, out.Seq, out.Messages = o.format, in.Turn, seq, turns[0].Messages
	for i, m := range out.Messages { // of some media only the hash is stored, as the message states
		out.Messages[i] = o.format.Sendable(m)
	}
	if in.Index == nil {
		return out.Paged(in.Page, most)
	}
	if n := int64(len(out.Messages)); *in.Index >= n {
		return nil, events.NewInvalid(events.CodeUnknownTurn, "index", fmt.Sprintf("is beyond %d, the last message of turn %d", n-1, in.Turn))
	}
	out.Index, out.Messages = *in.Index, out.Messages[*in.Index:][:1]
	return out, nil
}

// read returns turns of the session, nil for expired ones, and their bytes. If all are expired, the error is a
// [*stream.GoneError].
func (o *originals) read(ctx context.Context, seqs []uint64) ([]*events.Turn, int, error) {
	op := limit.Of(ctx)
	var stored []stream.LogMessage
	err := op.Idle(ctx, func() (err error) {
		stored, err = stream.GetLog(ctx, o.nc, seqs)
		return err
	})
	gone, some := errors.AsType[*stream.GoneError](err)
	if err != nil && (!some || len(gone.Seqs) == len(seqs)) {
		return nil, 0, fmt.Errorf("recall: %w", err)
	}
	size, out := 0, make([]*events.Turn, len(stored))
	for _, b := range stored {
		size += len(b.Data)
	}
	if err := op.ComputeOver(ctx, size); err != nil {
		return nil, 0, err
	}
	for i, b := range stored {
		if err := op.Yield(ctx); err != nil {
			return nil, 0, err
		}
		if b.Subject == "" {
			continue
		}
		if at, err := events.ParseLog(b.Subject); err != nil || at.Address != o.address || at.Kind != events.KindTurn {
			return nil, 0, fmt.Errorf("recall: sequence %d is no turn of this session", b.Seq)
		}
		if out[i], err = events.DecodeTurn(b.Data); err != nil {
			return nil, 0, fmt.Errorf("recall: sequence %d: %w", b.Seq, errors.New(string(events.CodeOf(err))))
		}
	}
	return out, size, nil
}

// searchOwn searches with the memory and the place for it.
func (o *originals) searchOwn(ctx context.Context, in *events.RecallRequest) (*events.SearchResponse, error) {
	release, err := limit.Of(ctx).Borrow(ctx, TurnMemory)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	defer release()
	return Reading(ctx, func() (*events.SearchResponse, error) { return o.search(ctx, in) })
}

// search looks for a text, newest message first, until it has enough matches or reaches its limit.
func (o *originals) search(ctx context.Context, in *events.RecallRequest) (*events.SearchResponse, error) {
	f := finder{
		text: regexp.MustCompile("(?i)" + regexp.QuoteMeta(in.Text)), limit: int(cmp.Or(in.Limit, events.DefaultHits)),
		before: events.Position{Turn: int64(len(o.seqs)) + 1}, out: events.SearchResponse{V: events.Version, Known: o.known, Hits: []events.Hit{}},
	}
	if in.Before != nil && in.Before.Compare(f.before) < 0 {
		f.before = *in.Before
	}
	op := limit.Of(ctx)
	if err := op.Compute(ctx); err != nil {
		return nil, orEnded(ctx, err)
	}
	defer op.Rest()
	for size, chunk := 0, 1; ; {
		to := int(min(f.before.Turn, int64(len(o.seqs)))) // turn number to is index to-1
		if f.before.Index == 0 {
			to = int(f.before.Turn - 1)
		}
		if to == 0 {
			return &f.out, nil
		}
		if len(f.out.Hits) == f.limit || size >= maxSearched {
			f.out.Before = &f.before
			return &f.out, nil
		}
		from := max(0, to-chunk)
		n, err := o.searchTurns(ctx, &f, from, to)
		if err == nil {
			err = op.Yield(ctx)
		}
		if err != nil {
			return nil, orEnded(ctx, err)
		}
		size += n + (to-from)*turnCost
		chunk = max(1, min(2*chunk, searchChunk, (to-from)*searchBytes/max(n, 1)))
	}
}

// searchTurns searches the turns from < t ≤ to, and returns the bytes that it read.
func (o *originals) searchTurns(ctx context.Context, f *finder, from, to int) (int, error) {
	seqs := make([]uint64, 0, to-from)
	for _, seq := range o.seqs[from:to] {
		seqs = append(seqs, uint64(seq))
	}
	turns, size, err := o.read(ctx, seqs)
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		turns = make([]*events.Turn, len(seqs))
	} else if err != nil {
		return 0, err
	}
	for i, t := range slices.Backward(turns) {
		if t == nil {
			f.out.Gone++
			f.before = events.Position{Turn: int64(from + i + 1)}
			continue
		}
		messages, err := o.format.ReadAll(t.Messages)
		if err != nil {
			return 0, fmt.Errorf("recall: turn %d: %w", from+i+1, errors.New(string(events.CodeOf(err))))
		}
		if full := f.match(int64(from+i+1), messages); full {
			break
		}
	}
	return size, ctx.Err()
}

// finder is one search.
type finder struct {
	text   *regexp.Regexp
	limit  int
	before events.Position // everything from here on is searched
	out    events.SearchResponse
}

// match adds the messages of a turn that contain the text, and reports whether it has enough.
func (f *finder) match(turn int64, messages []dialect.Message) (full bool) {
	for i, m := range slices.Backward(messages) {
		at := events.Position{Turn: turn, Index: int64(i)}
		if at.Compare(f.before) >= 0 {
			continue
		}
		if len(f.out.Hits) == f.limit {
			return true
		}
		f.before = at
		if excerpt, ok := f.excerpt(&m); ok {
			f.out.Hits = append(f.out.Hits, events.Hit{Turn: turn, Index: at.Index, Role: m.Role, Excerpt: excerpt})
		}
	}
	f.before = events.Position{Turn: turn}
	return len(f.out.Hits) == f.limit
}

// excerpt returns the surroundings of the first match in a message.
func (f *finder) excerpt(m *dialect.Message) (string, bool) {
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, s := range []string{p.Text, p.Tool, string(p.Args)} {
			if at := f.text.FindStringIndex(s); at != nil {
				return around(s, at[0]), true
			}
		}
	}
	return "", false
}

// around cuts a text to the surroundings of a place, between characters.
func around(s string, at int) string {
	from, to := max(0, at-excerptBefore), min(len(s), at+excerptAfter)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	b.WriteString(s[from:to])
	if to < len(s) {
		b.WriteString("…")
	}
	return b.String()
}
