package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// account runs the worker in the image, as in deploy/docker/Dockerfile.
const account = 65532

// config is that of deploy/docker/Dockerfile.
func (r *release) config() v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", account),
		Env:          []string{"PATH=/usr/local/bin", "COMPACTD_DATA=/var/lib/compactd", "COMPACTD_LOG_FORMAT=json"},
		Volumes:      map[string]struct{}{"/var/lib/compactd": {}},
		ExposedPorts: map[string]struct{}{"4222/tcp": {}, "8223/tcp": {}, "8224/tcp": {}},
		Entrypoint:   []string{"/usr/local/bin/compactd-worker"},
		Labels:       map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
}

// image writes an OCI layout with an image for each linux platform that was built, for
// docker load, podman load and skopeo copy.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	built := 0
	for _, arch := range []string{"amd64", "arm64"} {
		tree := r.tree("linux", arch)
		if _, err := os.Stat(tree); errors.Is(err, os.ErrNotExist) {
			continue
		}
		img, err := r.imageOf(tree, arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		built++
	}
	if built == 0 {
		return nil
	}
	dir := filepath.Join(r.work, "image")
	files, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := files.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/compactd:" + r.version,
	})); err != nil {
		return err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(add(w, "", dir, r.time), w.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "compactd_"+r.version+"_oci.tar"), out.Bytes(), 0o644)
}

// imageOf has one layer: what is installed, and what a static program needs of a system.
func (r *release) imageOf(tree, arch string) (v1.Image, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := r.system(w); err != nil {
		return nil, err
	}
	if err := errors.Join(add(w, "usr/local", tree, r.time), w.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config, file.Created = "linux", arch, r.config(), v1.Time{Time: r.time}
	return mutate.ConfigFile(img, file)
}

// system adds directories, an account, and the certificates of Mozilla's list, for models
// over HTTPS.
func (r *release) system(w *tar.Writer) error {
	for _, h := range []tar.Header{
		{Name: "tmp/", Mode: 0o1777},
		{Name: "var/lib/compactd/", Mode: 0o700, Uid: account, Gid: account},
	} {
		h.Typeflag, h.ModTime, h.Format = tar.TypeDir, r.time, tar.FormatUSTAR
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a file of certificates cannot express one
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	etc := filepath.Join(r.work, "etc")
	return errors.Join(
		os.MkdirAll(filepath.Join(etc, "ssl/certs"), 0o755),
		os.WriteFile(filepath.Join(etc, "ssl/certs/ca-certificates.crt"), roots.Bytes(), 0o644),
		os.WriteFile(filepath.Join(etc, "passwd"), fmt.Appendf(nil, "compactd:x:%d:%[1]d::/var/lib/compactd:/sbin/nologin\n", account), 0o644),
		add(w, "etc", etc, r.time))
}
