package syncs

import (
	"hash/maphash"
	"reflect"
	"testing"
	"unsafe"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A syncer remembers numbers, digests and names: no message, nor anything that keeps the buffer of one in memory.
func TestRemembersNoMessages(t *testing.T) {
	s := reflect.TypeFor[Syncer]()
	for _, name := range []string{"views", "given", "late", "heads", "stable"} {
		f, ok := s.FieldByName(name)
		if !ok {
			t.Fatalf("a syncer has no %s", name)
		}
		wantPlain(t, name, f.Type)
	}
}

// wantPlain fails if a type holds bytes, or may.
func wantPlain(t *testing.T, path string, of reflect.Type) {
	if of.PkgPath() == "sync" || of == reflect.TypeFor[events.Digest]() || of.String() == "time.Time" {
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		for f := range of.Fields() {
			wantPlain(t, path+"."+f.Name, f.Type)
		}
	case reflect.Map:
		wantPlain(t, path+" key", of.Key())
		wantPlain(t, path, of.Elem())
	case reflect.Pointer, reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			t.Errorf("%s holds %s", path, of)
		}
		wantPlain(t, path, of.Elem())
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		t.Errorf("%s may hold anything: %s", path, of)
	}
}

// The estimates of what a syncer remembers are the sizes of the types.
func TestBytes(t *testing.T) {
	for name, c := range map[string]struct {
		size  uintptr
		bytes int
	}{
		"view":         {unsafe.Sizeof(givenView{}), givenView{}.bytes()},
		"made message": {unsafe.Sizeof(madeMessage{}), madeMessageBytes},
		"given":        {unsafe.Sizeof(givenAt{}), givenAt{}.bytes()},
		"undecided":    {unsafe.Sizeof(undecided{}), undecided{}.bytes()},
		"synced turn":  {unsafe.Sizeof(syncedTurn{}), syncedTurnBytes},
	} {
		if int(c.size) != c.bytes {
			t.Errorf("%s: %d bytes in memory, estimated %d", name, c.size, c.bytes)
		}
	}
	v := givenView{made: make([]madeMessage, 0, 100)}
	u := undecided{settings: "set", turns: make([]syncedTurn, 2, 8)}
	if v.bytes() != givenViewBytes+100*madeMessageBytes || u.bytes() != undecidedBytes+3+8*syncedTurnBytes {
		t.Errorf("a view has %d bytes, undecided turns %d", v.bytes(), u.bytes())
	}
}

// A map of recent values never exceeds its bytes: whatever their sizes, and whichever are replaced or removed.
func TestRecent(t *testing.T) {
	held := func(r *recent[int, undecided]) (n int) {
		for _, u := range r.all {
			n += keyBytes + u.bytes()
		}
		return n
	}
	const most = 10_000
	r := recent[int, undecided]{most: most}
	of := func(turns int) undecided { return undecided{turns: make([]syncedTurn, turns)} }
	full := 0
	for i := range 1000 {
		before := len(r.all)
		r.put(i%70, of(i%13))
		if i%7 == 0 {
			r.drop(i % 11)
		}
		if _, ok := r.get(i % 70); !ok && i%7 != 0 {
			t.Fatalf("value %d was not held", i)
		}
		if len(r.all) < before-1 {
			full++
		}
		if n := held(&r); n > most || n != r.held {
			t.Fatalf("after value %d: %d bytes, counted %d, most %d", i, n, r.held, most)
		}
	}
	if full == 0 {
		t.Error("it was never full")
	}
	r.put(1, of(1))
	others := len(r.all)
	r.put(1, of(most))
	if _, ok := r.get(1); ok || len(r.all) != others-1 {
		t.Errorf("a value beyond the limit is held: %v, with %d others of %d", ok, len(r.all), others-1)
	}
}

// The key of a cached view follows from all that is rendered, and does not change with turns after the view.
func TestFormOf(t *testing.T) {
	seed := maphash.MakeSeed()
	base := func() *render.View {
		return &render.View{
			Format: events.Anthropic, Renamed: stage.Renamed{1: {Turn: 2}}, Uncited: stage.Uncited{0: true},
			Thinking: render.Thinking{Bound: true, Kept: []render.Turns{{From: 1, To: 2}, {From: 4, To: 6}}},
			Entries:  []measure.Entry{{Seq: 1, Turn: 1}, {Seq: 7, Turn: 5}},
		}
	}
	want := formOf(seed, base(), 5)
	for name, change := range map[string]func(*render.View){
		"nothing":     func(*render.View) {},
		"a next turn": func(v *render.View) { v.Thinking.Kept[1].To = 7 },
		"the next turns": func(v *render.View) {
			v.Thinking.Kept = append(v.Thinking.Kept, render.Turns{From: 8, To: 9}, render.Turns{From: 11, To: 12})
		},
	} {
		v := base()
		change(v)
		if formOf(seed, v, 5) != want {
			t.Errorf("%s: the key is another one", name)
		}
	}
	for name, change := range map[string]func(*render.View){
		"format":   func(v *render.View) { v.Format = events.OpenAI },
		"role":     func(v *render.View) { v.PlaceholderRole = dialect.RoleSystem },
		"system":   func(v *render.View) { v.SystemInside = true },
		"demands":  func(v *render.View) { v.Demands.Drops = []string{"name"} },
		"marks":    func(v *render.View) { v.Marks = 1 },
		"renamed":  func(v *render.View) { v.Renamed[1] = events.Position{Turn: 3} },
		"uncited":  func(v *render.View) { delete(v.Uncited, 0) },
		"by hash":  func(v *render.View) { v.Originals = render.ByHash },
		"bound":    func(v *render.View) { v.Thinking.Bound = false },
		"kept":     func(v *render.View) { v.Thinking.Kept[0].To = 1 },
		"loops":    func(v *render.View) { v.Thinking.Loops = make([]render.Loop, 1) },
		"entry":    func(v *render.View) { v.Entries[1].Ceiling = 9 },
		"text":     func(v *render.View) { v.Entries[1].Seq = 8 },
		"one less": func(v *render.View) { v.Entries = v.Entries[:1] },
	} {
		v := base()
		if change(v); formOf(seed, v, 5) == want {
			t.Errorf("%s: the key is the same", name)
		}
	}
}
