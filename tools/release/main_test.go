package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// An archive names no account, and its modes are those of programs and texts.
func TestPack(t *testing.T) {
	at, dir := time.Unix(1_700_000_000, 0), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.WriteFile(filepath.Join(dir, "a/program"), []byte("code"), 0o700),
		os.WriteFile(filepath.Join(dir, "b"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	packed, err := pack("compactd_1", dir, at)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(at) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
	}
	if want := []string{"-rwxr-xr-x compactd_1/a/program", "-rw-r--r-- compactd_1/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The bill lists the modules of a program with version, licence and sum. A module whose
// licence is not listed is an error.
func TestBill(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable() // a test binary names its modules as a program does
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if err := os.Symlink(self, filepath.Join(dir, "compactd-"+p)); err != nil {
			t.Fatal(err)
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this program names no modules")
	}
	notices := "| module | version | licence |\n|---|---|---|\n"
	for _, m := range info.Deps {
		notices += "| " + m.Path + " | " + m.Version + " | BSD-3-Clause, Apache-2.0 |\n"
	}
	r := &release{version: "1.2.3", time: time.Unix(1_700_000_000, 0).UTC(), licence: licences(notices)}
	one, err := r.bill("compactd_1", dir, []byte("archive"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.bill("compactd_1", dir, []byte("archive"))
	if err != nil || !bytes.Equal(one, two) {
		t.Fatalf("%v: two bills of the same programs differ", err)
	}
	var b struct {
		BOMFormat, SpecVersion string
		Components             []struct {
			Name, Version, PURL string
			Licenses            []struct{ Expression string }
			Hashes              []struct{ Content string }
		}
	}
	if err := json.Unmarshal(one, &b); err != nil {
		t.Fatal(err)
	}
	if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.6" || len(b.Components) != 1+len(info.Deps) || b.Components[0].Name != "std" {
		t.Fatalf("got %+v", b)
	}
	c, m := b.Components[1], info.Deps[0]
	if c.PURL != "pkg:golang/"+m.Path+"@"+m.Version || c.Licenses[0].Expression != "Apache-2.0 AND BSD-3-Clause" || len(c.Hashes[0].Content) != 64 {
		t.Errorf("got %+v", c)
	}
	delete(r.licence, m.Path)
	if _, err := r.bill("compactd_1", dir, nil); err == nil || !strings.Contains(err.Error(), "make notices") {
		t.Errorf("got %v", err)
	}
}
