package commit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// foreign stores a message that no commit has, and returns its sequence.
func (w *env) foreign(subject string, data string, h nats.Header) uint64 {
	w.T.Helper()
	a, err := w.JS.PublishMsg(w.T.Context(), &nats.Msg{Subject: subject, Data: []byte(data), Header: h})
	if err != nil {
		w.T.Fatal(err)
	}
	return a.Sequence
}

// headersAt are those of a stored message.
func (w *env) headersAt(seq uint64) nats.Header {
	w.T.Helper()
	m, err := jsapi.GetFromLeader(w.T.Context(), w.NC, topology.OutcomesStream, jsapi.GetRequest{Seq: seq})
	if err != nil {
		w.T.Fatal(err)
	}
	return m.Headers()
}

// only keeps some headers.
func only(h nats.Header, names ...string) nats.Header {
	out := nats.Header{}
	for _, n := range names {
		if v := h[n]; len(v) > 0 {
			out[n] = v
		}
	}
	return out
}

// assembledOf is what the assembler finds in partition 1 behind a sequence: the data of each commit,
// and how many messages are foreign.
func (w *env) assembledOf(behind uint64) (commits [][]string, foreign Foreign) {
	w.T.Helper()
	newest, err := MarkerAt(w.T.Context(), w.NC, 1, behind)
	if err != nil {
		w.T.Fatal(err)
	}
	a := Assembler[string]{
		Partition: 1, Newest: newest, Behind: behind, From: behind + 1, Stored: IsStored(w.T.Context(), w.NC), Foreign: foreign.Add,
		Commit: func(c Commit[string]) error {
			commits = append(commits, c.Messages)
			return nil
		},
	}
	all := stream.Selection{Stream: topology.OutcomesStream, Filters: []string{events.OutcomeFilter(1)}, From: behind + 1, Foreign: true}
	err = stream.Read(w.T.Context(), w.JS, all, func(m jetstream.Msg, seq uint64) error {
		return a.Add(m.Headers(), seq, string(m.Data()))
	})
	if err = errors.Join(err, a.End()); err != nil {
		w.T.Fatal(err)
	}
	return commits, foreign
}

// Messages that others put between, before and behind the commits of an owner end neither its
// commits nor a take-over. The owner keeps its epoch, and reports each of them once.
func TestForeign(t *testing.T) {
	w := newEnv(t)
	w.foreign("out.1.mark", "{}", nil) // before anything was committed
	var reported []uint64
	claim := Claim{Partition: 1, Owner: "me", Config: "cfg", OnForeign: func(f Foreign) {
		for seq := f.First; seq <= f.Last; seq++ {
			reported = append(reported, seq)
		}
	}}
	c, found, err := TakeOver(t.Context(), w.Connect(connect.Options{}), claim)
	if err != nil {
		t.Fatal(err)
	}
	if found.Seq != 0 || c.Epoch() != 1 {
		t.Errorf("found a marker at %d, epoch %d", found.Seq, c.Epoch())
	}
	want := []uint64{1}
	cursor := uint64(0)
	for _, n := range []int{0, 1, 3} {
		cursor++
		if err := c.Commit(t.Context(), budgets(n, strconv.Itoa(n)), Marker{Cursor: cursor, Config: "cfg"}); err != nil {
			t.Fatal(err)
		}
		newest := w.headersAt(c.LastSeq())
		first := w.headersAt(c.LastSeq() - uint64(max(n, 1)-1))
		for name, m := range map[string]*nats.Msg{
			"plain":                      {Subject: "out.1.budget.t.s", Data: []byte("{")},
			"nothing":                    {Subject: "out.1.mark"},
			"an unknown kind":            {Subject: "out.1.other.t.s", Data: []byte("{}")},
			"a job":                      {Subject: "out.1.job.normal.t.s", Data: []byte("{}")},
			"a subject of the fence":     {Subject: "out.1.a.b.c.d.e.f", Data: []byte("{}")},
			"a huge one":                 {Subject: "out.1.compacted.t.s", Data: bytes.Repeat([]byte("x"), 7<<20)},
			"the marker, copied":         {Subject: "out.1.compacted.t.s", Header: only(newest, HeaderMarker)},
			"a marker that is no JSON":   {Subject: "out.1.compacted.t.s", Header: nats.Header{HeaderMarker: {"{"}}},
			"a forged marker":            {Subject: "out.1.mark", Header: nats.Header{HeaderMarker: {`{"cursor":99,"owner":"you","epoch":99,"commit":"x"}`}}},
			"a fence of another subject": {Subject: "out.1.mark", Header: nats.Header{HeaderMarker: newest[HeaderMarker], jsapi.HeaderFence: {"0"}, jsapi.HeaderFenceSubject: {"out.9.>"}}},
		} {
			if _, err := w.JS.PublishMsg(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want = append(want, c.LastSeq()+uint64(len(want)-len(reported)))
		}
		if _, err := w.JS.PublishMsg(t.Context(), &nats.Msg{Subject: "out.1.mark", Header: first}); err == nil {
			t.Error("the server took a copy of the fence")
		}
		if m := w.marker(1); m.Cursor != cursor || m.Seq != c.LastSeq() || m.Time.IsZero() {
			t.Errorf("marker: cursor %d at %d, want %d at %d", m.Cursor, m.Seq, cursor, c.LastSeq())
		}
	}
	if err := c.Commit(t.Context(), nil, Marker{Cursor: 4, Config: "cfg"}); err != nil {
		t.Fatal(err)
	}
	if c.Epoch() != 1 {
		t.Errorf("epoch %d", c.Epoch())
	}
	w.foreign("out.1.budget.t.s", "behind all", nil)
	_, found, err = TakeOver(t.Context(), w.Connect(connect.Options{}), Claim{Partition: 1, Owner: "you", Config: "cfg"})
	if err != nil {
		t.Fatal(err)
	}
	if found.Cursor != 4 || found.Epoch != 1 || found.Owner != "me" {
		t.Errorf("taken over from %+v", found)
	}
	if err := c.Commit(t.Context(), nil, Marker{Cursor: 5}); !errors.Is(err, ErrFenced) {
		t.Errorf("the former owner: %v", err)
	}
	commits, foreign := w.assembledOf(0)
	if diff := cmp.Diff([][]string{{""}, {""}, {"1"}, {"3", "3", "3"}, {""}, {""}}, commits); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	if foreign.Messages != 32 || len(reported) != 31 || !slices.IsSorted(reported) {
		t.Errorf("%d foreign, reported %v", foreign.Messages, reported)
	}
}

// A message with the true fence is of no commit without a marker that continues the
// one before: neither alone, nor as a batch, nor as one that begins or ends in another partition.
func TestForeignFence(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	commit := func() {
		t.Helper()
		if err := c.Commit(t.Context(), budgets(2, "ours"), Marker{Cursor: 1, Config: "cfg"}); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	checkpoint := c.LastSeq()
	marker := w.headersAt(c.LastSeq())[HeaderMarker]
	fenced := func() nats.Header {
		return nats.Header{jsapi.HeaderFence: {strconv.FormatUint(w.lastOf("out.1.>"), 10)}, jsapi.HeaderFenceSubject: {"out.1.>"}}
	}
	older := fmt.Sprintf(`{"cursor":1,"owner":"me","epoch":%d,"commit":"x"}`, c.Epoch()-1)
	other := fmt.Sprintf(`{"cursor":1,"owner":"you","epoch":%d,"commit":"x"}`, c.Epoch())
	for _, text := range []string{older, other, "", "{"} {
		h := fenced()
		if text != "" {
			h[HeaderMarker] = []string{text}
		}
		w.foreign("out.1.other.t.s", "fenced", h)
		commit()
	}
	for _, x := range []struct {
		first, last string
		marker      []string
	}{
		{"out.1.other.t.s", "out.1.other.t.x", nil},
		{"out.1.other.t.s", "out.1.other.t.x", []string{other}},
		{"out.2.other.t.s", "out.1.other.t.x", marker},
	} {
		h, id := fenced(), nats.NewInbox()
		if x.first[:6] != "out.1." {
			h = nats.Header{}
		}
		h[jsapi.HeaderBatchID], h[jsapi.HeaderBatchSeq] = []string{id}, []string{"1"}
		if err := w.NC.PublishMsg(&nats.Msg{Subject: x.first, Header: h}); err != nil {
			t.Fatal(err)
		}
		h = nats.Header{jsapi.HeaderBatchID: {id}, jsapi.HeaderBatchSeq: {"2"}, jsapi.HeaderBatchCommit: {"1"}}
		if x.marker != nil {
			h[HeaderMarker] = x.marker
		}
		w.foreign(x.last, "batch", h)
		commit()
	}
	whole, _ := w.assembledOf(0)
	behind, _ := w.assembledOf(checkpoint)
	if len(behind) != 7 || !slices.EqualFunc(whole[len(whole)-len(behind):], behind, slices.Equal) {
		t.Errorf("behind a checkpoint %q, of the whole stream %q", behind, whole)
	}
	for i, text := range slices.Concat(whole[1:]...) {
		if text != "ours" {
			t.Errorf("%d: %q is taken for ours", i, text)
		}
	}
	if m := w.marker(1); m.Seq != c.LastSeq() {
		t.Errorf("marker at %d, want %d", m.Seq, c.LastSeq())
	}
}

// Messages at the end of a partition that have its true fence, and a marker of another log or of
// another owner, are of no commit for all that read its end: the newest marker is
// ours, and the next commit or owner goes on from there and reports them once.
func TestForeignFenceLast(t *testing.T) {
	w := newEnv(t)
	reported := 0
	claim := Claim{Partition: 1, Owner: "me", Config: "cfg", LogCreated: 7, OnForeign: func(f Foreign) { reported += f.Messages }}
	c, _, err := TakeOver(t.Context(), w.Connect(connect.Options{}), claim)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		`{"cursor":9,"owner":"me","epoch":%d,"log_created":8,"commit":"x"}`,
		`{"cursor":9,"owner":"you","epoch":%d,"log_created":7,"commit":"x"}`,
		`{"cursor":9,"owner":"me","epoch":%d0,"log_created":8,"commit":"x"}`,
	} {
		if err := c.Commit(t.Context(), budgets(1, "ours"), Marker{Cursor: uint64(i + 1), Config: "cfg", LogCreated: 7}); err != nil {
			t.Fatal(err)
		}
		h := nats.Header{jsapi.HeaderFence: {strconv.FormatUint(c.LastSeq(), 10)}, jsapi.HeaderFenceSubject: {"out.1.>"}}
		h[HeaderMarker] = []string{fmt.Sprintf(text, c.Epoch())}
		w.foreign("out.1.mark", "", h)
		if m := w.marker(1); m.Seq != c.LastSeq() || m.Cursor != uint64(i+1) {
			t.Errorf("%s: the newest marker is at %d with cursor %d, want %d", h[HeaderMarker], m.Seq, m.Cursor, c.LastSeq())
		}
		if f, err := CountForeign(t.Context(), w.NC, 1, c.LastSeq()); err != nil || f.Messages != 1 {
			t.Errorf("%s: %d foreign, %v", h[HeaderMarker], f.Messages, err)
		}
	}
	claim.Owner = "next"
	next, found, err := TakeOver(t.Context(), w.Connect(connect.Options{}), claim)
	if err != nil {
		t.Fatal(err)
	}
	if found.Cursor != 3 || found.Owner != "me" || next.Epoch() != c.Epoch()+1 || reported != 3 {
		t.Errorf("taken over from %+v, %d reported", found, reported)
	}
}

// lastOf is the sequence of the last message of a subject of OUTCOMES.
func (w *env) lastOf(filter string) uint64 {
	w.T.Helper()
	m, err := jsapi.GetFromLeader(w.T.Context(), w.NC, topology.OutcomesStream, jsapi.GetRequest{LastFor: filter})
	if err != nil {
		w.T.Fatal(err)
	}
	return m.Seq
}

// The newest marker is found behind more foreign messages than are searched at once.
func TestForeignMany(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	for range 2 * firstWindow {
		if err := w.NC.Publish("out.1.budget.t.s", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	w.foreign("out.1.budget.t.s", "last", nil)
	if m := w.marker(1); m.Seq != c.LastSeq() || m.Owner != "me" {
		t.Errorf("marker at %d of %q", m.Seq, m.Owner)
	}
	next := w.takeOver("you")
	if next.Epoch() != c.Epoch()+1 {
		t.Errorf("epoch %d after %d", next.Epoch(), c.Epoch())
	}
}

// Commits are found whatever is stored between them, and whatever an erasure takes of them. The
// rest still belongs to its commit.
func TestAssemblerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stored struct {
			seq    uint64
			h      nats.Header
			value  string // "" for what is foreign
			erased bool
		}
		var all []stored
		add := func(s stored) uint64 {
			s.seq = uint64(len(all) + 1)
			all = append(all, s)
			return s.seq
		}
		last, epoch := uint64(0), uint64(1)
		for i := range rapid.IntRange(1, 20).Draw(t, "commits") {
			for range rapid.IntRange(0, 3).Draw(t, "foreign") {
				h := nats.Header{}
				if n := rapid.IntRange(-1, len(all)-1).Draw(t, "copied"); n >= 0 && !all[n].erased && jsapi.ParseSeq(jsapi.First(all[n].h, jsapi.HeaderBatchSeq)) < 2 {
					h = all[n].h // with a fence that the server does not see, for the form of the block
				}
				last = add(stored{h: h})
			}
			if rapid.Bool().Draw(t, "taken over") {
				epoch++
			}
			n := rapid.IntRange(1, 4).Draw(t, "messages")
			for j := range n {
				h := nats.Header{}
				if n > 1 {
					h[jsapi.HeaderBatchID], h[jsapi.HeaderBatchSeq] = []string{fmt.Sprint("b", i)}, []string{strconv.Itoa(j + 1)}
				}
				if j == 0 {
					h[jsapi.HeaderFence], h[jsapi.HeaderFenceSubject] = []string{fmt.Sprint(last)}, []string{"out.1.>"}
				}
				if j == n-1 {
					h[HeaderMarker] = []string{fmt.Sprintf(`{"cursor":%d,"owner":"o%d","epoch":%d,"commit":"c%d"}`, i, epoch, epoch, i)}
					if n > 1 {
						h[jsapi.HeaderBatchCommit] = []string{"1"}
					}
				}
				add(stored{h: h, value: fmt.Sprintf("%d.%d", i, j), erased: rapid.IntRange(0, 5).Draw(t, "erased") == 0})
			}
			last = uint64(len(all))
		}
		var want, got []string
		foreign, counted := 0, Foreign{}
		a := Assembler[string]{
			Partition: 1, Foreign: counted.Add,
			Stored: func(seq uint64) (bool, error) { return seq <= uint64(len(all)) && !all[seq-1].erased, nil },
			Commit: func(c Commit[string]) error {
				got = append(got, c.Messages...)
				return nil
			},
		}
		for _, s := range all {
			if s.erased {
				continue
			}
			if s.value == "" {
				foreign++
			} else {
				want = append(want, s.value)
			}
			if err := a.Add(s.h, s.seq, s.value); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.End(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("messages of commits (-want +got):\n%s", diff)
		}
		if counted.Messages != foreign {
			t.Fatalf("%d foreign, want %d", counted.Messages, foreign)
		}
	})
}
