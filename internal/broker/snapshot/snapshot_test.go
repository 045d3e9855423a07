package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
)

func (w *env) begin(partition int) *Upload {
	w.T.Helper()
	u, err := New(w.JS).Begin(w.T.Context(), partition)
	if err != nil {
		w.T.Fatal(err)
	}
	return u
}

func (w *env) put(u *Upload, m commit.Marker, outcomes uint64, body []byte) {
	w.T.Helper()
	if err := u.Put(w.T.Context(), m, outcomes, bytes.NewReader(body)); err != nil {
		w.T.Fatal(err)
	}
}

// snapshot reads the newest snapshot; nil when there is none.
func (w *env) snapshot(partition int) (*Snapshot, []byte) {
	w.T.Helper()
	s := New(w.JS)
	newest, err := s.Newest(w.T.Context(), partition)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		w.T.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Read(w.T.Context(), newest, &b); err != nil {
		w.T.Fatal(err)
	}
	return newest, b.Bytes()
}

// chunks counts the messages of a partition's snapshots, whole or not.
func (w *env) chunks(partition int) (n uint64) {
	w.T.Helper()
	s, err := w.JS.Stream(w.T.Context(), topology.SnapshotsStream)
	if err != nil {
		w.T.Fatal(err)
	}
	info, err := s.Info(w.T.Context(), jetstream.WithSubjectFilter(chunksPrefix+">"))
	if err != nil {
		w.T.Fatal(err)
	}
	for subject, msgs := range info.State.Subjects {
		if isPartOf(subject, partition) {
			n += msgs
		}
	}
	return n
}

// The newest snapshot of a partition comes back as it was put, with its marker, and
// only its chunks are kept; partitions do not touch one another, not even 1 and 11.
func TestSnapshots(t *testing.T) {
	w := newEnv(t)
	if s, _ := w.snapshot(1); s != nil {
		t.Fatalf("before any: %+v", s)
	}
	m := commit.Marker{Cursor: 1 << 60, Owner: "a", Epoch: 3, Config: "cfg", Chain: 1<<64 - 1, LastID: "id", LastTime: 5, LogCreated: 1 << 62}
	other := brokertest.Payload(11, 10)
	w.put(w.begin(11), m, 1, other)
	for seed, n := range []int{0, 1, chunkBytes, 3*chunkBytes + 17} {
		body := brokertest.Payload(uint64(seed), n)
		m.Cursor++
		w.put(w.begin(1), m, uint64(seed), body)
		got, data := w.snapshot(1)
		want := &Snapshot{Partition: 1, Marker: m, Outcomes: uint64(seed), Bytes: uint64(n)}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Snapshot{}), cmpopts.IgnoreFields(Snapshot{}, "Time")); diff != "" {
			t.Error(diff)
		}
		if !bytes.Equal(data, body) || time.Since(got.Time).Abs() > time.Hour {
			t.Errorf("%d bytes came back as %d, of %s", n, len(data), got.Time)
		}
		if c := w.chunks(1); c != uint64((n+chunkBytes-1)/chunkBytes) {
			t.Errorf("%d bytes are kept in %d chunks", n, c)
		}
	}
	if _, data := w.snapshot(11); !bytes.Equal(data, other) {
		t.Error("partition 11 lost its snapshot to partition 1")
	}
}

// Any client of object stores reads a snapshot.
func TestSnapshotIsAnObject(t *testing.T) {
	w := newEnv(t)
	body := brokertest.Payload(1, chunkBytes+1)
	w.put(w.begin(2), commit.Marker{Cursor: 9}, 1, body)
	store, err := w.JS.ObjectStore(t.Context(), topology.SnapshotsBucket)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := store.GetBytes(brokertest.Within(t, time.Minute), "p2"); err != nil || !bytes.Equal(data, body) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// An upload that began before another one ended, or before an erasure, stores
// nothing, whichever of the two had a snapshot to replace (P6).
func TestSnapshotFence(t *testing.T) {
	w := newEnv(t)
	body := brokertest.Payload(1, 2*chunkBytes)
	for _, before := range []bool{false, true} {
		if before {
			w.put(w.begin(1), commit.Marker{Epoch: 1}, 0, body)
		}
		stale := w.begin(1)
		w.put(w.begin(1), commit.Marker{Epoch: 2}, 0, body)
		if err := stale.Put(t.Context(), commit.Marker{Epoch: 1}, 0, bytes.NewReader(brokertest.Payload(2, 3*chunkBytes))); !errors.Is(err, ErrMoved) {
			t.Errorf("a stale upload: %v", err)
		}
		if s, data := w.snapshot(1); s.Marker.Epoch != 2 || !bytes.Equal(data, body) || w.chunks(1) != 2 {
			t.Errorf("after it: %+v, %d chunks", s.Marker, w.chunks(1))
		}
		erased := w.begin(1)
		if err := New(w.JS).Erase(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := erased.Put(t.Context(), commit.Marker{Epoch: 3}, 0, bytes.NewReader(body)); !errors.Is(err, ErrMoved) {
			t.Errorf("an upload from before the erasure: %v", err)
		}
		if s, _ := w.snapshot(1); s != nil || w.chunks(1) != 0 {
			t.Errorf("the erasure left %+v and %d chunks", s, w.chunks(1))
		}
	}
}

// An upload that was cut off leaves the snapshot before it, and the next one
// removes what it left.
func TestSnapshotCutOff(t *testing.T) {
	w := newEnv(t)
	body := brokertest.Payload(1, 100)
	w.put(w.begin(1), commit.Marker{Cursor: 1}, 0, body)
	broken := io.MultiReader(bytes.NewReader(brokertest.Payload(2, 2*chunkBytes)), &failing{})
	if err := w.begin(1).Put(t.Context(), commit.Marker{Cursor: 2}, 0, broken); !errors.Is(err, errFailing) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ends := io.MultiReader(bytes.NewReader(brokertest.Payload(3, chunkBytes)), &failing{do: cancel}, bytes.NewReader(body))
	if err := w.begin(1).Put(ctx, commit.Marker{Cursor: 3}, 0, ends); err == nil {
		t.Error("an upload whose time is over succeeded")
	}
	if s, data := w.snapshot(1); s.Marker.Cursor != 1 || !bytes.Equal(data, body) || w.chunks(1) != 4 {
		t.Errorf("after two that were cut off: %+v, %d chunks", s.Marker, w.chunks(1))
	}
	w.put(w.begin(1), commit.Marker{Cursor: 4}, 0, body)
	if c := w.chunks(1); c != 1 {
		t.Errorf("%d chunks are left", c)
	}
}

var errFailing = errors.New("failing")

// failing does something at its first read, or fails.
type failing struct{ do func() }

func (f *failing) Read([]byte) (int, error) {
	if f.do == nil {
		return 0, errFailing
	}
	f.do()
	return 0, io.EOF
}

// A snapshot whose chunks are gone, or were changed, is not read as if it were whole.
func TestSnapshotDamaged(t *testing.T) {
	w := newEnv(t)
	stream, err := w.JS.Stream(t.Context(), topology.SnapshotsStream)
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func(*Snapshot) error{
		"all chunks gone": func(s *Snapshot) error {
			return stream.Purge(t.Context(), jetstream.WithPurgeSubject(chunkSubject(s.object)))
		},
		"one gone": func(s *Snapshot) error {
			return stream.Purge(t.Context(), jetstream.WithPurgeSubject(chunkSubject(s.object)), jetstream.WithPurgeKeep(1))
		},
		"one more": func(s *Snapshot) error {
			_, err := w.JS.Publish(t.Context(), chunkSubject(s.object), []byte("x"))
			return err
		},
		"one changed": func(s *Snapshot) error {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(chunkSubject(s.object)), jetstream.WithPurgeKeep(1)); err != nil {
				return err
			}
			_, err := w.JS.Publish(t.Context(), chunkSubject(s.object), brokertest.Payload(9, chunkBytes))
			return err
		},
	} {
		w.put(w.begin(1), commit.Marker{}, 0, brokertest.Payload(1, 2*chunkBytes))
		s, err := New(w.JS).Newest(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := harm(s); err != nil {
			t.Fatal(err)
		}
		if err := New(w.JS).Read(t.Context(), s, io.Discard); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After an erasure no byte of any snapshot is on the server's disk, neither of the
// newest nor of those it replaced, nor of an upload that was cut off.
func TestSnapshotErase(t *testing.T) {
	dir := t.TempDir()
	w := openEnv(t, dir, topology.Config{Partitions: 4})
	secret := []byte("canary-4711")
	for i := range 4 {
		w.put(w.begin(1), commit.Marker{}, 0, slices.Concat(brokertest.Payload(uint64(i), chunkBytes), secret))
		w.put(w.begin(2), commit.Marker{}, 0, slices.Concat(brokertest.Payload(uint64(i), 10), secret))
	}
	broken := io.MultiReader(bytes.NewReader(append(secret, brokertest.Payload(5, chunkBytes)...)), &failing{})
	if err := w.begin(1).Put(t.Context(), commit.Marker{}, 0, broken); err == nil {
		t.Fatal("it did not end")
	}
	if found := grep(t, dir, secret); len(found) == 0 {
		t.Fatal("nothing is found before the erasure: this test is blind")
	}
	if err := New(w.JS).Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := brokertest.Within(t, time.Minute)
	for found := grep(t, dir, secret); len(found) > 0; found = grep(t, dir, secret) {
		if ctx.Err() != nil { // the server removes the files in the background
			t.Fatalf("found in %v", found)
		}
	}
}

// grep lists the files under dir that hold a text.
func grep(t *testing.T, dir string, text []byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, text) {
			found = append(found, strings.TrimPrefix(path, dir))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An upload goes on when its last attempt is still being stored, and ends for another owner or a full stream.
func TestClassifyUpload(t *testing.T) {
	for code, again := range map[jetstream.ErrorCode]bool{
		10158: true, jsapi.CodeNoLeader: true, jsapi.CodeWrongLastConstant: true, jsapi.CodeWrongLastSequence: false, jsapi.CodeStoreFailed: false,
	} {
		err := classifyUpload(t.Context(), &jetstream.APIError{ErrorCode: code})
		if retry.IsFinal(err) == again {
			t.Errorf("%d: %v", code, err)
		}
	}
}
