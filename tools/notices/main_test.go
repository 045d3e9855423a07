package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The notices list what the programs link now, with the text of every licence.
func TestCurrent(t *testing.T) {
	if err := run(t.Context(), "../..", true); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\| github.com/nats-io/nats-server/v2 \| v2\S+ \| Apache-2.0 \|`, `\| Go standard library \| as built \| BSD-3-Clause \|`, `(?m)^## .*\bgo.etcd.io/bbolt`} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("there is no %s", want)
		}
	}
}

// A licence that is not known, and a module without one, are errors and no gaps.
func TestUnknownLicence(t *testing.T) {
	m := &module{Path: "example.com/m", Dir: t.TempDir()}
	must(t, os.WriteFile(filepath.Join(m.Dir, "LICENSE"), []byte("All rights reserved.\n"), 0o600))
	if err := m.add(m.Dir); err == nil || !strings.Contains(err.Error(), "example.com/m: LICENSE is a licence that is not known") {
		t.Errorf("got %v", err)
	}
	must(t, os.WriteFile(filepath.Join(m.Dir, "LICENSE"), []byte("Mozilla Public License\r\nVersion 2.0  \n"), 0o600))
	below := filepath.Join(m.Dir, "a", "b")
	must(t, os.MkdirAll(below, 0o700))
	must(t, os.WriteFile(filepath.Join(below, "LICENSE-MIT"), []byte("Permission is hereby granted, free of charge, to any\nperson obtaining a copy"), 0o600))
	if err := m.add(below); err != nil || !m.licences["MPL-2.0"] || !m.licences["MIT"] || len(m.texts) != 2 {
		t.Errorf("%v: %v", err, m.licences)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
