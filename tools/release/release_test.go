package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const root = "../.."

// The version is the same in every file that names it.
func TestVersion(t *testing.T) {
	v, err := version(root)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("TestVersion: the version is", v)
}

// A file with another version is named, and so is one without.
func TestOtherVersion(t *testing.T) {
	dir := t.TempDir()
	for _, p := range places {
		text, err := os.ReadFile(filepath.Join(root, p.file))
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Base(p.file) {
		case "Chart.yaml":
			text = bytes.ReplaceAll(text, []byte("appVersion: "), []byte("appVersion: 9"))
		case "__init__.py":
			text = bytes.ReplaceAll(text, []byte("__version__"), []byte("version"))
		}
		file := filepath.Join(dir, p.file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := version(dir)
	for _, want := range []string{"deploy/helm/compactd/Chart.yaml has the version 9", "clients/python/src/compactd/__init__.py names no version"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The image is configured as that of the Dockerfile.
func TestImageIsThatOfDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/docker/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	c := (&release{}).config()
	lines := []string{"ENV " + strings.Join(c.Env[1:], " "), "USER " + c.User, fmt.Sprintf("ENTRYPOINT [%q]", c.Entrypoint[0])}
	for v := range c.Volumes {
		lines = append(lines, "VOLUME "+v)
	}
	var ports []string
	for p := range c.ExposedPorts {
		ports = append(ports, strings.TrimSuffix(p, "/tcp"))
	}
	slices.Sort(ports)
	for _, line := range append(lines, "EXPOSE "+strings.Join(ports, " ")) {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the Dockerfile has no %q", line)
		}
	}
}

// Two runs make the same files, and each of them is installed and started: the programs play
// the examples of the demo, the clients pass a request on. With -short it is built once, for
// this platform.
func TestRelease(t *testing.T) {
	platforms := []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}
	if testing.Short() {
		platforms = []string{runtime.GOOS + "/" + runtime.GOARCH}
	}
	r := &release{out: t.TempDir()}
	sums, err := run(root, r.out, "", platforms)
	if err != nil {
		t.Fatal(err)
	}
	if !testing.Short() {
		again, err := run(root, t.TempDir(), "", platforms)
		if err != nil {
			t.Fatal(err)
		}
		if again != sums {
			t.Errorf("two runs differ:\n%s\n%s", sums, again)
		}
	}
	fmt.Print(sums)
	if r.version, err = version(root); err != nil {
		t.Fatal(err)
	}
	must(t, r.out, "sha256sum", "--quiet", "-c", "SHA256SUMS")
	host := runtime.GOOS + "_" + runtime.GOARCH
	t.Run("archive", func(t *testing.T) { testArchive(t, r, host) })
	t.Run("formula", func(t *testing.T) { testFormula(t, r, len(platforms)) })
	t.Run("npm", func(t *testing.T) { testNPM(t, r) })
	t.Run("python", func(t *testing.T) { testPython(t, r) })
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("debian", func(t *testing.T) { testDebian(t, r) })
	t.Run("image", func(t *testing.T) { testImage(t, r) })
}

func testArchive(t *testing.T, r *release, host string) {
	dir := t.TempDir()
	must(t, dir, "tar", "--strip-components=1", "-xzf", r.file("compactd_"+r.version+"_"+host+".tar.gz"))
	play(t, r, filepath.Join(dir, "bin"), exec.CommandContext(t.Context(), filepath.Join(dir, "bin/compactd-worker"), "--data", filepath.Join(t.TempDir(), "data")))
	bill, err := os.ReadFile(r.file("compactd_" + r.version + "_" + host + ".cdx.json"))
	if err != nil || !json.Valid(bill) {
		t.Error("no bill of materials:", err)
	}
}

// The package is installed below a directory, with its unit, and leaves nothing when it is removed.
func testDebian(t *testing.T, r *release) {
	dir := t.TempDir()
	file := r.file(fmt.Sprintf("compactd_%s_%s.deb", r.version, runtime.GOARCH))
	if got := must(t, dir, "dpkg-deb", "--field", file, "Version"); got != r.version {
		t.Errorf("the package has the version %s", got)
	}
	asRoot := os.Getuid() == 0
	if asRoot {
		must(t, dir, "mkdir", "-p", "var/lib/dpkg/info", "var/lib/dpkg/updates")
		must(t, dir, "touch", "var/lib/dpkg/status")
		must(t, dir, "dpkg", "--root="+dir, "--install", file)
	} else {
		must(t, dir, "dpkg-deb", "--extract", file, dir)
	}
	bin := filepath.Join(dir, "usr/bin")
	play(t, r, bin, exec.CommandContext(t.Context(), filepath.Join(bin, "compactd-worker"), "--data", filepath.Join(t.TempDir(), "data")))
	unit, err := os.ReadFile(filepath.Join(dir, "usr/lib/systemd/system/compactd-worker.service"))
	if err != nil || !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/compactd-worker\n")) {
		t.Errorf("%v: the unit is\n%s", err, unit)
	}
	if !asRoot {
		return
	}
	must(t, dir, "dpkg", "--root="+dir, "--purge", "compactd")
	if left := must(t, dir, "find", dir, "-name", "*compactd*"); left != "" {
		t.Error("the package left", left)
	}
}

// The entrypoint of the image runs with its settings; as root, within its files and as its account.
func testImage(t *testing.T, r *release) {
	dir := t.TempDir()
	must(t, dir, "tar", "-xf", r.file("compactd_"+r.version+"_oci.tar"))
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%v: the layout has %+v", err, list)
	}
	if index, err = index.ImageIndex(list.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	if list, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.Manifests, func(m v1.Descriptor) bool { return m.Platform.Architecture == runtime.GOARCH })
	img, err := index.Image(list.Manifests[at].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	within := t.TempDir()
	unpack(t, mutate.Extract(img), within)
	certificates, err := os.ReadFile(filepath.Join(within, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		t.Errorf("%v: the image has no certificates", err)
	}
	worker := exec.CommandContext(t.Context(), file.Config.Entrypoint[0])
	worker.Env = file.Config.Env
	if os.Getuid() == 0 {
		worker.Dir = "/"
		worker.SysProcAttr = &syscall.SysProcAttr{Chroot: within, Credential: &syscall.Credential{Uid: account, Gid: account}}
	} else {
		worker.Path = filepath.Join(within, worker.Path)
		worker.Env = append(worker.Env, "COMPACTD_DATA="+filepath.Join(t.TempDir(), "data"))
	}
	play(t, r, filepath.Join(within, "usr/local/bin"), worker)
}

// unpack writes the files of an image, with their owners if this is root.
func unpack(t *testing.T, image io.ReadCloser, dir string) {
	t.Helper()
	defer image.Close()
	if err := os.Chmod(dir, 0o755); err != nil { // another account reads it
		t.Fatal(err)
	}
	for r := tar.NewReader(image); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600))
		}
		if err := errors.Join(err, os.Chmod(path, h.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Chown(path, h.Uid, h.Gid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The formula names each archive with its sum, and is Ruby.
func testFormula(t *testing.T, r *release, platforms int) {
	text, err := os.ReadFile(r.file("compactd.rb"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^  if OS\.(?:mac|linux)\? && Hardware::CPU\.(?:intel|arm)\?\n    url "file://#\{__dir__\}/(.*)"\n    sha256 "(.*)"\n  end$`).FindAllSubmatch(text, -1)
	if len(found) != platforms {
		t.Errorf("%d archives of %d platforms in\n%s", len(found), platforms, text)
	}
	for _, f := range found {
		if sum, err := r.sum(string(f[1])); err != nil || sum != string(f[2]) {
			t.Errorf("%s: %v, has the sum %s, the formula has %s", f[1], err, sum, f[2])
		}
	}
	if _, err := exec.LookPath("ruby"); err != nil {
		fmt.Println("testFormula: SKIPPED: no ruby is here, which would read the formula")
		return
	}
	must(t, r.out, "ruby", "-c", "compactd.rb")
}

// passes answers a request that the clients pass on.
func passes(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "passed") }))
	t.Cleanup(server.Close)
	return server.URL
}

func testNPM(t *testing.T, r *release) {
	dir := t.TempDir()
	must(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", dir, r.file("compactd-"+r.version+".tgz"))
	got := must(t, dir, "node", "--input-type=module", "-e", `import { compactd } from "compactd";
		const fetch = compactd({ url: process.argv[1], token: "token", session: "chat" });
		console.log(await (await fetch(process.argv[1] + "/other")).text());`, passes(t))
	if got != "passed" {
		t.Errorf("got %q", got)
	}
}

func testPython(t *testing.T, r *release) {
	dir := t.TempDir()
	must(t, dir, "python3", "-m", "venv", "--without-pip", "env")
	own := filepath.Join(dir, "env/bin/python")
	must(t, dir, "python3", "-m", "pip", "--python", own, "install", "--quiet", "--no-index", r.file("compactd-"+r.version+"-py3-none-any.whl"))
	got := must(t, dir, own, "-I", "-c", `import sys, urllib.request, compactd, compactd.urllib
opener = urllib.request.build_opener(compactd.urllib.Handler(sys.argv[1], "token", session="chat"))
print(compactd.__version__, opener.open(sys.argv[1] + "/other").read().decode())`, passes(t))
	if got != r.version+" passed" {
		t.Errorf("got %q", got)
	}
}

func (r *release) file(name string) string { return filepath.Join(r.out, name) }

// play starts a worker with an embedded server, and has the publisher beside it replay the
// examples of the demo.
func play(t *testing.T, r *release, bin string, worker *exec.Cmd) {
	t.Helper()
	if got := must(t, bin, filepath.Join(bin, "compactd-worker"), "version"); !strings.Contains(got, r.version) {
		t.Errorf("the worker has the version %q", got)
	}
	worker.Args = append(worker.Args, "--listen", "127.0.0.1:-1", "--http", "127.0.0.1:-1", "--log-format", "json")
	worker.Cancel = func() error { return worker.Process.Signal(syscall.SIGTERM) }
	log, err := worker.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Level, Message, NATS string }
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Level != "info" {
				t.Error(lines.Text())
			}
			if line.Message == "ready" {
				ready <- line.NATS
			}
		}
	}()
	defer func() {
		_ = worker.Process.Signal(syscall.SIGTERM)
		for range ready { // its log ends with it
		}
		if err := worker.Wait(); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	}()
	var url string
	select {
	case url = <-ready:
	case <-time.After(time.Minute):
	}
	if url == "" {
		t.Fatal("the worker did not become ready")
	}
	var result struct{ Compactions int }
	got := must(t, root, filepath.Join(bin, "compactd-publisher"), "--nats", url, "--json", "replay", "--gap", "10ms", "examples/sessions")
	if err := json.Unmarshal([]byte(got[strings.LastIndex(got, "\n")+1:]), &result); err != nil || result.Compactions == 0 {
		t.Errorf("%v: the demo printed %s", err, got)
	}
	fmt.Printf("%s: version %s, %d compactions\n", t.Name(), r.version, result.Compactions)
}

// must runs a command in a directory and returns what it prints, without the line break.
func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, problems.String())
	}
	return strings.TrimSpace(string(out))
}
