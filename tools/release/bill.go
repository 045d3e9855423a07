package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// bill writes the bill of materials of an archive. The modules are those that the built
// programs name themselves.
func (r *release) bill(name, dir string, archive []byte) ([]byte, error) {
	modules := map[string]*debug.Module{}
	goVersion := ""
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, "compactd-"+p))
		if err != nil {
			return nil, err
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path] = m
		}
	}
	sum := sha256.Sum256(archive)
	top := cdx.Component{
		BOMRef: "compactd", Type: cdx.ComponentTypeApplication, Name: "compactd", Version: r.version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses: &cdx.Licenses{{Expression: "Apache-2.0"}},
	}
	version := strings.TrimPrefix(goVersion, "go")
	components := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: version,
		PackageURL: "pkg:golang/std@" + version, Licenses: &cdx.Licenses{{Expression: "BSD-3-Clause"}},
	}}
	refs := []string{"std"}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		c, err := r.component(modules[path])
		if err != nil {
			return nil, err
		}
		components = append(components, c)
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(name), sum[:]...)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &top}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: top.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// component describes a module. A module whose licence THIRD_PARTY_NOTICES.md does not
// list is an error.
func (r *release) component(m *debug.Module) (cdx.Component, error) {
	licence := r.licence[m.Path]
	if licence == "" {
		return cdx.Component{}, fmt.Errorf("THIRD_PARTY_NOTICES.md does not list %s; run: make notices", m.Path)
	}
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl,
		Licenses: &cdx.Licenses{{Expression: licence}},
	}
	// The sum of go.sum is over names and hashes of the module's files, in base64.
	if sum, found := strings.CutPrefix(m.Sum, "h1:"); found {
		digest, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return c, fmt.Errorf("sum of %s: %w", m.Path, err)
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
	}
	return c, nil
}
