package transcript

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"compactd/internal/ops/units"
)

// program is one that leaves its sessions in directories of its user.
type program struct {
	name  string
	paths []string // with wildcards
}

// programsOf have the directories that each program's own source gives as defaults, and the variables
// that move them.
func programsOf(home string) []program {
	config, err := os.UserConfigDir()
	if err != nil {
		config = filepath.Join(home, ".config")
	}
	opencode := filepath.Join(dirOf("XDG_DATA_HOME", home, ".local", "share"), "opencode")
	db := cmp.Or(os.Getenv("OPENCODE_DB"), "opencode*.db")
	if !filepath.IsAbs(db) {
		db = filepath.Join(opencode, db)
	}
	return []program{
		{"Claude Code", below(dirOf("CLAUDE_CONFIG_DIR", home, ".claude"), "projects")},
		{"Codex", below(dirOf("CODEX_HOME", home, ".codex"), "sessions", "archived_sessions")},
		{"opencode", append([]string{db}, below(opencode, "storage")...)}, // the database first: see Source.Sessions
		{"pi", below(dirOf("PI_CODING_AGENT_DIR", home, ".pi", "agent"), "sessions")},
		{"oh-my-pi", below(dirOf("OMP_CODING_AGENT_DIR", home, ".omp", "agent"), "sessions")},
		{"Copilot CLI", below(dirOf("COPILOT_HOME", home, ".copilot"), "session-state")},
		{"Gemini CLI", below(dirOf("GEMINI_CLI_HOME", home), ".gemini/tmp")},
		{"mini-swe-agent", []string{dirOf("MSWEA_GLOBAL_CONFIG_DIR", config, "mini-swe-agent")}},
	}
}

// dirOf is the directory that a variable names, or one below another.
func dirOf(variable, dir string, path ...string) string {
	return cmp.Or(os.Getenv(variable), filepath.Join(append([]string{dir}, path...)...))
}

func below(dir string, names ...string) (out []string) {
	for _, name := range names {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// Place is a directory or file that holds sessions of a program.
type Place struct {
	Program string
	Path    string
	Files   int
}

// Installed finds the sessions that programs have left on this machine, for this user. The
// source may be empty.
func Installed() (*Source, []Place) {
	s := &Source{}
	home, err := os.UserHomeDir()
	if err != nil {
		return s, nil
	}
	var places []Place
	for _, p := range programsOf(home) {
		for _, pattern := range p.paths {
			paths, _ := filepath.Glob(pattern) // a bad pattern has no paths
			for _, path := range paths {
				before := len(s.files)
				if s.walk(Auto, path); len(s.files) > before {
					places = append(places, Place{p.name, path, len(s.files) - before})
				}
			}
		}
	}
	return s, places
}

// Describe states the places, with ~ for the home of the user.
func Describe(places []Place) string {
	home, _ := os.UserHomeDir()
	var out []string
	for _, p := range places {
		path := p.Path
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
			path = "~" + string(filepath.Separator) + rest
		}
		out = append(out, fmt.Sprintf("%s: %s in %s", p.Program, units.Count(p.Files, "file"), path))
	}
	return strings.Join(out, "\n")
}
