package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/plain.db has pages of 512 bytes, so that its table is a tree, and its long text on
// further pages. testdata/log.db has a row in its file, one that was committed to its log, and
// one that was not. Both were written by SQLite 3.40 from testdata/*.sql.

func rows(t *testing.T, path, table string, columns ...string) (out []string) {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tab, err := db.Table(table, columns...)
	if err != nil {
		t.Fatal(err)
	}
	for ref, err := range tab.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		row, err := tab.Read(ref)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			if s, ok := v.(string); ok && len(s) > 40 {
				row[i] = fmt.Sprintf("%d of %q", len(s), s[len(s)-3:])
			}
		}
		out = append(out, fmt.Sprint(row))
	}
	return out
}

// Rows come with the columns that were named, in the order of their rowids, whatever page
// they are on.
func TestRows(t *testing.T) {
	got := rows(t, "testdata/plain.db", "part", "id", "n", "data", "later", "none")
	if len(got) != 64 {
		t.Fatalf("%d rows", len(got))
	}
	want := []string{
		"[p1 0 one <nil> <nil>]", "[p2 1 10000 of \"xyz\" <nil> <nil>]", "[p3 -1 <nil> <nil> <nil>]", "[p4 9007199254740993 [0 255] added <nil>]", "[p5 -300 five <nil> <nil>]",
	}
	if diff := cmp.Diff(want, got[:5]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := got[63]; last != "[p64 70000 row 64 <nil> <nil>]" {
		t.Errorf("the last row is %s", last)
	}
}

// Rows that were committed to the log are read in place of those of the file.
func TestLog(t *testing.T) {
	if diff := cmp.Diff([]string{"[a new]", "[b two]"}, rows(t, "testdata/log.db", "message", "id", "data")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColumns(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE TABLE `part` (\n\t`id` text PRIMARY KEY,\n\t`data` text NOT NULL,\n\tCONSTRAINT `fk` FOREIGN KEY (`id`, `data`) REFERENCES `m`(`id`)\n)": "id data",
		`CREATE TABLE x(a INT DEFAULT (1+(2)), "b" DECIMAL(10,2), [c], PRIMARY KEY (a, b))`:                                                              "a b c",
		"": "",
	} {
		if got := strings.Join(columnsOf(sql), " "); got != want {
			t.Errorf("%q, want %q, of %s", got, want, sql)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrFormat) {
		t.Errorf("opened text: %v", err)
	}
	db, err := Open("testdata/plain.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Table("nothing"); !errors.Is(err, ErrFormat) {
		t.Errorf("found nothing: %v", err)
	}
}

// Whatever a file holds, reading it ends.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"testdata/plain.db", "testdata/log.db"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(path)
		if err != nil {
			return
		}
		defer db.Close()
		tab, err := db.Table("part", "id", "data")
		if err != nil {
			return
		}
		n := 0
		for ref, err := range tab.Rows() {
			if err != nil {
				return
			}
			if n++; n > len(data) {
				t.Fatalf("%d rows in %d bytes", n, len(data))
			}
			_, _ = tab.Read(ref)
		}
	})
}
