package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// places are the files that name the version beside CHANGELOG.md, with how they do.
var places = []struct{ file, pattern string }{
	{"CHANGELOG.md", `(?m)^## (\d+\.\d+\.\d+[-.\w]*)`},
	{"clients/typescript/package.json", `"version": "(.*)"`},
	{"clients/typescript/package-lock.json", `"version": "(.*)"`},
	{"clients/python/src/compactd/__init__.py", `(?m)^__version__ = "(.*)"$`},
	{"deploy/helm/compactd/Chart.yaml", `(?m)^version: (.*)$`},
	{"deploy/helm/compactd/Chart.yaml", `(?m)^appVersion: (.*)$`},
}

// version is that of the newest heading of CHANGELOG.md, the first place. Another in any of
// them is an error.
func version(root string) (newest string, err error) {
	var errs []error
	for i, p := range places {
		text, err := os.ReadFile(filepath.Join(root, p.file))
		if err != nil {
			return "", err
		}
		found := regexp.MustCompile(p.pattern).FindSubmatch(text)
		switch {
		case found == nil:
			errs = append(errs, fmt.Errorf("%s names no version", p.file))
		case i == 0:
			newest = string(found[1])
		case string(found[1]) != newest:
			errs = append(errs, fmt.Errorf("%s has the version %s, CHANGELOG.md has %s", p.file, found[1], newest))
		}
	}
	return newest, errors.Join(errs...)
}
