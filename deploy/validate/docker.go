package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// checkCompose loads a compose file against the schema of its specification, and checks
// that the files it mounts are there and that nothing is published beyond loopback.
func checkCompose(file string) (string, error) {
	dir := filepath.Dir(file)
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: file}},
		Environment: types.Mapping{"COMPACTD_HTTP_TOKEN": "0123456789abcdef", "GRAFANA_PASSWORD": "x"},
	})
	if err != nil {
		return "", err
	}
	var errs []error
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					errs = append(errs, fmt.Errorf("service %s mounts %w", name, err))
				}
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				errs = append(errs, fmt.Errorf("service %s publishes %d on %q", name, p.Target, p.HostIP))
			}
		}
		if b := s.Build; b != nil {
			if _, err := os.Stat(filepath.Join(b.Context, b.Dockerfile)); err != nil {
				errs = append(errs, fmt.Errorf("service %s builds %w", name, err))
			}
		}
	}
	_, err = loader.LoadWithContext(context.Background(), types.ConfigDetails{WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: file}}})
	if err == nil {
		errs = append(errs, errors.New("it loads without its secrets"))
	}
	return fmt.Sprintf("%d services, %d volumes", len(project.Services), len(project.Volumes)), errors.Join(errs...)
}

// checkDockerfile parses a Dockerfile and its instructions.
func checkDockerfile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	result, err := parser.Parse(f)
	if err != nil {
		return "", err
	}
	if len(result.Warnings) > 0 {
		return "", fmt.Errorf("line %v: %s", result.Warnings[0].Location, result.Warnings[0].Short)
	}
	stages, _, err := instructions.Parse(result.AST, nil)
	if err != nil {
		return "", err
	}
	n, user := 0, ""
	for _, s := range stages {
		for _, c := range s.Commands {
			n++
			if u, ok := c.(*instructions.UserCommand); ok {
				user = u.User
			}
		}
	}
	if user == "" || user == "root" || user == "0" {
		return "", fmt.Errorf("it runs as %q", user)
	}
	return fmt.Sprintf("%d instructions of %d stages", n, len(stages)), nil
}
