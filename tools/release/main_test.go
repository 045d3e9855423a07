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
	"slices"
	"strings"
	"testing"
	"time"
)

// An archive has the same bytes whatever the order of its entries, and names no account.
func TestPack(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	entries := []entry{{"b", 0o644, []byte("text")}, {"a/program", 0o755, []byte("code")}}
	one, err := pack("compactd_1", at, entries)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	two, err := pack("compactd_1", at, entries)
	if err != nil || !bytes.Equal(one, two) {
		t.Fatalf("%v: two archives of the same files differ", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(one))
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
		if err := os.Symlink(self, filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{version: "1.2.3", time: time.Unix(1_700_000_000, 0).UTC(), licence: licences(
		"| module | version | licence |\n|---|---|---|\n| github.com/CycloneDX/cyclonedx-go | v0.12.0 | Apache-2.0 |\n" +
			"| github.com/google/uuid | v1.6.0 | BSD-3-Clause, Apache-2.0 |\n")}
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
	if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.6" || len(b.Components) != 3 || b.Components[0].Name != "std" {
		t.Fatalf("got %+v", b)
	}
	c := b.Components[2]
	if c.PURL != "pkg:golang/github.com/google/uuid@"+c.Version || c.Licenses[0].Expression != "Apache-2.0 AND BSD-3-Clause" || len(c.Hashes[0].Content) != 64 {
		t.Errorf("got %+v", c)
	}
	delete(r.licence, "github.com/google/uuid")
	if _, err := r.bill("compactd_1", dir, nil); err == nil || !strings.Contains(err.Error(), "make notices") {
		t.Errorf("got %v", err)
	}
}

// The version is that of the newest release.
func TestNewest(t *testing.T) {
	for text, want := range map[string]string{
		"# Changelog\n\n## Unreleased\n\n## 0.2.0 (2027-01-01)\n\n## 0.1.0\n": "0.2.0",
		"## [1.0.0-rc.1] - 2027-01-01\n":                                      "1.0.0-rc.1",
		"# Changelog\n\n## Unreleased\n":                                      "0.0.0",
		"# Changelog\n":                                                       "",
	} {
		if got, err := newest(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}
