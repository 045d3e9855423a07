package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

const summary = "Keeps the conversations of LLM agents inside their context windows"

// debian writes a package of a tree, with files where Debian has them.
func (r *release) debian(tree, arch string) error {
	usr := tree + "_debian"
	at := func(path string) string { return filepath.Join(usr, path) }
	if err := os.CopyFS(usr, os.DirFS(tree)); err != nil {
		return err
	}
	unit := at("lib/systemd/system/compactd-worker.service")
	text, err := os.ReadFile(unit)
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(unit, bytes.ReplaceAll(text, []byte("/usr/local"), []byte("/usr")), 0o644),
		os.Rename(at("share/zsh/site-functions"), at("share/zsh/vendor-completions")),
		os.Link(at("share/doc/compactd/LICENSE"), at("share/doc/compactd/copyright")),
	); err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "compactd", Arch: arch, Platform: "linux", Version: r.version, Section: "net", Priority: "optional",
		Maintainer: "compactd <root@localhost>", Description: summary, License: "Apache-2.0", MTime: r.time,
		Overridables: nfpm.Overridables{
			Recommends: []string{"ca-certificates"},
			Umask:      0o022,
			Contents:   files.Contents{{Source: usr, Destination: "/usr", Type: files.TypeTree}},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := deb.Default.Package(info, &out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("compactd_%s_%s.deb", r.version, arch)), out.Bytes(), 0o644)
}

//go:embed formula.rb.tmpl
var formula string

// formula writes a formula for Homebrew with the sums of the archives.
func (r *release) formula(url string) error {
	if url == "" {
		url = "file://#{__dir__}"
	}
	type archive struct{ OS, CPU, URL, Sum string }
	data := struct {
		Summary, Version string
		Archives         []archive
	}{Summary: summary, Version: r.version}
	for _, p := range []archive{{OS: "darwin", CPU: "amd64"}, {OS: "darwin", CPU: "arm64"}, {OS: "linux", CPU: "amd64"}, {OS: "linux", CPU: "arm64"}} {
		name := strings.Join([]string{"compactd", r.version, p.OS, p.CPU}, "_") + ".tar.gz"
		sum, err := r.sum(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		brew := map[string]string{"darwin": "macos", "linux": "linux", "amd64": "intel", "arm64": "arm"}
		data.Archives = append(data.Archives, archive{brew[p.OS], brew[p.CPU], url + "/" + name, sum})
	}
	var out bytes.Buffer
	if err := template.Must(template.New("").Parse(formula)).Execute(&out, data); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "compactd.rb"), out.Bytes(), 0o644)
}

// npm packs the client for JavaScript.
func (r *release) npm() error {
	dir := filepath.Join(r.source, "clients/typescript")
	if _, err := output(dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"); err != nil {
		return err
	}
	_, err := output(dir, "npm", "pack", "--loglevel=error", "--pack-destination", r.out)
	return err
}

// wheel builds the client for Python, with the first Python that has what it needs.
func (r *release) wheel() error {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import setuptools, wheel").Run() != nil {
			continue
		}
		cmd := exec.Command(python, "-c", "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv.pop())", r.out)
		cmd.Dir = filepath.Join(r.source, "clients/python")
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("wheel of %s: %w\n%s", python, err, out)
		}
		return nil
	}
	return errors.New("no python3 has setuptools and wheel; install Debian's python3-setuptools and python3-wheel")
}
