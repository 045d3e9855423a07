package partition

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/worker/decide"
)

// sync has the history answered by a worker, and looks at the answer.
func (c *caller) sync() {
	s := c.a.s
	flat := c.now()
	s.register(c.a.address.Session, flat)
	for _, l := range c.lineages() {
		s.register(c.a.address.Session, l)
	}
	wait := int64(s.IntN(2) * 1000)
	in := &events.SyncRequest{
		About: c.a.address.About(), Branch: c.branch, Format: events.OpenAI, Messages: flat,
		Model:        &events.Model{Provider: "openai", Name: "m", ContextWindow: int64(c.a.window), MaxOutputTokens: int64(c.a.window / 5)},
		OnDivergence: c.onDiverge, WaitMS: &wait, DryRun: s.odds(8),
	}
	if c.volatile != "" && c.prefix != nil && (int(c.prefix.Count) > len(flat) || !sameMessages(c.sent[:c.prefix.Count], flat[:c.prefix.Count])) {
		c.prefix = nil
	}
	c.sent = flat
	if c.remembers && c.prefix != nil {
		in.Prefix, in.Messages = c.prefix, flat[c.prefix.Count:]
		if s.flaw == prefixLonger && len(in.Messages) > 1 {
			in.Messages = in.Messages[1:]
		}
		s.synced.Prefixes++
	}
	if c.remembers && c.view != "" && s.odds(40) {
		in.Usage = &events.SyncUsage{View: c.view, Count: []int64{0, int64(len(flat)), int64(s.IntN(len(flat) + 1))}[s.IntN(3)], Raw: fmt.Appendf(nil, `{"input_tokens":%d}`, 1+s.IntN(c.a.window))}
	}
	if c.view != "" && s.odds(4) {
		in.Refused = &events.SyncRefused{View: c.view, Status: 400, Error: fmt.Appendf(nil, `"prompt is too long: %d tokens > %d maximum"`, c.a.window+50, c.a.window)}
	}
	o := s.worker(in.Address())
	if o == nil {
		return
	}
	s.synced.Syncs++
	before, formers := maps.Clone(s.through), s.formers
	out, err := o.answerSync(c, in)
	if err != nil {
		c.failed(err)
		return
	}
	if s.odds(10) {
		s.synced.LostAnswers++
		return
	}
	if out.Need == events.NeedAll {
		s.synced.Needed++
		c.prefix = nil
		if in.Prefix == nil {
			s.violated("%s: need all of a whole history", c.name)
		}
		return
	}
	c.receive(in, out, flat)
	if out.Recorded && s.formers == formers {
		c.notBefore(o, cmp.Or(out.Session, in.Address().Session), out.Through.Seq, before)
	}
	if !in.DryRun && out.Session == "" && s.odds(30) {
		c.compare(o, out, flat)
	}
}

// worker is the one that a request about a session reaches: sometimes one that has not noticed that it was
// replaced, or one of a partition that the session was in before the log grew.
func (s *simulation) worker(a events.Address) *owner {
	p, path := s.known().Of(a), s.table.Path(a)
	if len(s.zombies) > 0 && s.odds(8) {
		if z := s.zombies[s.IntN(len(s.zombies))]; slices.Contains(path, z.partition) {
			return z
		}
	}
	if len(path) > 1 && s.odds(15) {
		p = path[s.IntN(len(path))]
	}
	if s.current[p] == nil {
		s.takeOver(p)
	}
	return s.current[p]
}

// failed looks at a refusal.
func (c *caller) failed(err error) {
	s, code := c.a.s, events.CodeOf(err)
	s.note("%s: %v", c.name, err)
	switch {
	case !slices.Contains(syncRefusals, code):
		s.violated("%s: sync: %w", c.name, err)
	case (code == events.CodeOtherHistory || code == events.CodeDiverged) && c.onDiverge != events.DivergeRefuse:
		s.violated("%s: on_diverge %s is answered %s", c.name, c.onDiverge, code)
	case code == events.CodeOtherHistory:
		s.synced.Others++
	case code == events.CodeDiverged, code == events.CodeEditedView:
		s.synced.Refused++
	case code == events.CodeWrongPartition:
		s.synced.Wrong++
	}
}

// receive applies an answer.
func (c *caller) receive(in *events.SyncRequest, out *events.SyncResponse, flat []codec.Raw) {
	s := c.a.s
	if err := wantCovered(out.Parts, len(flat)); err != nil {
		s.violated("%s: %w", c.name, err)
		return
	}
	applied := align.Apply(flat, out.Parts)
	for _, m := range applied {
		if !bytes.Equal(events.OpenAI.Dialect().Sendable(m), m) {
			s.violated("%s is sent a reference: %s", c.name, m)
		}
	}
	c.ownOnly(flat, applied)
	has := func(code events.Code) bool {
		return slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == code })
	}
	if in.Refused != nil && !in.DryRun && out.View == in.Refused.View {
		s.violated("%s: the view %s was refused, and is given again", c.name, out.View)
	}
	exceeded := out.Code == events.CodeBudgetExceeded
	fits := out.Budget.WithinBudget && in.Refused == nil // a provider may refuse what we think fits
	if exceeded != (out.Retry != nil) || exceeded != has(events.CodeBudgetExceeded) || exceeded && fits {
		s.violated("%s: code %q, retry %v, %+v", c.name, out.Code, out.Retry, out.Budget)
	}
	late := has(events.CodeLate)
	if late {
		s.synced.Late++
	}
	if out.Session != "" && out.Session != in.Address().Session {
		s.synced.Branches++
		if out.Branch != "" && events.BranchID(in.Address().Session, out.Branch) != out.Session {
			s.violated("%s: %s is no branch %s of %s", c.name, out.Session, out.Branch, in.Address().Session)
		}
	}
	fitted := !out.Recorded || strings.HasPrefix(out.View, "fit:")
	if fitted {
		s.synced.Fitted++
		if bad := validate.Messages(events.OpenAI, applied); len(bad) > 0 {
			s.violated("%s: %v in %s", c.name, bad, applied)
		}
		if out.Recorded && !out.Budget.WithinBudget {
			s.violated("%s: the messages of a recorded history are fitted, and do not fit: %+v", c.name, out)
		}
	}
	if !out.Recorded {
		if !has(events.CodeBudgetExceeded) && !out.Budget.WithinBudget || out.Count > 0 {
			s.violated("%s: an answer that is not recorded: %+v", c.name, out)
		}
		c.prefix = nil
		if c.view = out.View; in.DryRun {
			c.view = ""
		}
		return
	}
	if unchanged := !out.Changed && late; unchanged {
		return
	}
	tail, last := flat[len(flat):], flat[len(flat):]
	switch {
	case in.DryRun || late || out.Turns < out.Through.Turn:
		tail = flat[min(int(out.Known), len(flat)):]
	case out.Count > 0 && int(out.Count) < len(flat):
		tail = flat[out.Count:]
		s.synced.Held++
	case out.Count == 0 && c.volatile == "tail":
		last = flat[len(flat)-1:]
	}
	address := in.Address()
	if out.Session != "" {
		address.Session = out.Session
	}
	s.note("%s: %d of %s, generation %d through %+v, known %d, %d parts", c.name, len(flat), address.Session, out.Generation, out.Through, out.Known, len(out.Parts))
	if s.counts.Children > 0 {
		s.synced.Grown++
	}
	if !fitted { // fitted ones are of no ledger
		s.answers = append(s.answers, &answered{caller: c, address: address, out: out, applied: applied, tail: tail, last: last, refused: in.Refused != nil && late})
	}
	if out.Changed {
		s.synced.Compacted++
	}
	if in.DryRun || late {
		return
	}
	c.view, c.prefix = out.View, nil
	if out.Count > 0 && out.Session == "" {
		c.prefix = &events.SyncPrefix{Count: out.Count, Hash: out.Hash}
	}
	if c.volatile == "" && out.Changed && out.Session == "" && !fitted && out.Turns == out.Through.Turn && s.odds(10) { // it goes on with what it was answered
		s.synced.Adopted++
		if c.bases = c.lineages(); s.counts.EventsLost > 0 {
			c.bases = append(c.bases, flat)
		}
		c.groups, c.prefix = [][]codec.Raw{applied}, nil
	}
}

// notBefore checks that an owner does not answer as of an event before that of an earlier answer.
func (c *caller) notBefore(o *owner, session string, last uint64, before map[string]uint64) {
	s, was := c.a.s, before[session]
	if last < was && o == s.current[o.partition] && !slices.ContainsFunc(s.log[was:], func(e decide.Event) bool {
		return e.Address.Session == session && (e.Kind == events.KindEnd || e.Kind == events.KindForget)
	}) {
		s.violated("%s is answered as of event %d of %s, and was answered as of %d", c.name, last, session, was)
	}
	s.through[session] = max(last, s.through[session])
}

// wantCovered checks that the ranges of parts cover n messages once, in order.
func wantCovered(parts []events.SyncPart, n int) error {
	at := int64(0)
	for _, p := range parts {
		r := events.SyncRange{at, at}
		switch {
		case p.Keep != nil:
			r = *p.Keep
		case p.Drop != nil:
			r = *p.Drop
		case p.Edit != nil:
			r = events.SyncRange{*p.Edit, *p.Edit + 1}
		case p.StandsFor != nil:
			r = *p.StandsFor
		}
		if r[0] != at || r[1] < r[0] {
			return fmt.Errorf("a part is of %v, after %d", r, at)
		}
		at = r[1]
	}
	if at != int64(n) {
		return fmt.Errorf("the parts end at %d of %d", at, n)
	}
	return nil
}

// ownOnly checks that a caller is sent nothing of another one whose messages it does not have.
func (c *caller) ownOnly(flat, applied []codec.Raw) {
	s := c.a.s
	have, given := bytes.Join(asBytes(append(slices.Concat(c.lineages()...), flat...)), nil), bytes.Join(asBytes(applied), nil)
	for _, a := range s.agents {
		for _, other := range a.callers {
			sign := []byte(other.name + ":")
			if other != c && bytes.Contains(given, sign) && !bytes.Contains(have, sign) {
				s.violated("%s is sent messages of %s: %s", c.name, other.name, given)
			}
		}
	}
}

func sameMessages(a, b []codec.Raw) bool {
	return slices.EqualFunc(a, b, func(x, y codec.Raw) bool { return bytes.Equal(seen(x), seen(y)) })
}

func asBytes(list []codec.Raw) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// compare requests the same again while nothing else happens: of the worker that remembers earlier answers, of one
// that remembers nothing, and with the prefix. All must be the same.
func (c *caller) compare(o *owner, out *events.SyncResponse, flat []codec.Raw) {
	s := c.a.s
	s.alone = true
	defer func() { s.alone = false }()
	none := int64(0)
	whole := events.SyncRequest{
		About: c.a.address.About(), Branch: c.branch, Format: events.OpenAI, Messages: flat, DryRun: true,
		WaitMS: &none, OnDivergence: events.DivergeRefuse,
	}
	remembered, rerr := o.answerSync(c, &whole)
	o.syncer = nil
	first, err := o.answerSync(c, &whole)
	if events.CodeOf(err) != events.CodeOf(rerr) || !reflect.DeepEqual(first, remembered) {
		s.violated("%s: a worker that remembers answers\n%+v, %v\nanother one\n%+v, %v", c.name, remembered, rerr, first, err)
		return
	}
	if err != nil || first.Hash != out.Hash || out.Count != int64(len(flat)) || len(first.Warnings) > 0 {
		return // it moved since
	}
	rest := whole
	rest.Prefix, rest.Messages = &events.SyncPrefix{Count: out.Count, Hash: out.Hash}, []codec.Raw{}
	second, err := o.answerSync(c, &rest)
	if err != nil {
		return
	}
	s.synced.Compared++
	if second.Need != "" {
		s.violated("%s: the prefix %d of %s is not known at once", c.name, out.Count, out.Hash)
		return
	}
	for _, other := range []*events.SyncResponse{first, second} {
		if err := wantCovered(other.Parts, len(flat)); err != nil {
			s.violated("%s: %w", c.name, err)
			return
		}
	}
	x, y := align.Apply(flat, first.Parts), align.Apply(flat, second.Parts)
	if first.View != second.View || !sameMessages(x, y) {
		s.violated("%s: with a prefix the answer is\n%s\nwithout\n%s", c.name, y, x)
	}
}
