package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkHelm does what helm lint does, and checks the manifests of the chart as those beside it. policy gets that of
// the chart.
func checkHelm(dir, policy string) (string, error) {
	var errs []error
	for _, m := range lint.All(dir, nil, "default", true).Messages {
		if m.Severity >= support.WarningSev {
			errs = append(errs, m)
		}
	}
	chart, err := loader.Load(dir)
	if err != nil {
		return "", errors.Join(append(errs, err)...)
	}
	values, err := chartutil.ToRenderValues(chart, nil, chartutil.ReleaseOptions{Name: "fleet", Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		return "", errors.Join(append(errs, err)...)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return "", errors.Join(append(errs, err)...)
	}
	found := map[string]runtime.Object{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		if err := add(found, []byte(files[name])); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	errs = append(errs, checkNames(found), writePolicy(found, "fleet-policy", policy))
	return fmt.Sprintf("%d objects", len(found)), errors.Join(errs...)
}
