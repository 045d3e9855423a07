package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// call is one call of a tool. Scripts name files relative to the repository; the
// agent sees them under /repo.
type call struct {
	tool    string
	input   any
	subject string // for errors: the file or command
	fails   bool   // the script expects an error
	run     func(*sandbox) (string, error)
}

// failing says that the call is to end in an error.
func failing(c call) call {
	c.fails = true
	return c
}

// home is where the agent believes the repository to be.
const home = "/repo"

// read reads a whole file, numbered.
func read(file string) call { return readLines(file, 0, 0) }

// readLines reads limit lines of a file, from line offset on; 0 reads all.
func readLines(file string, offset, limit int) call {
	in := struct {
		FilePath string `json:"file_path"`
		Offset   int    `json:"offset,omitempty"`
		Limit    int    `json:"limit,omitempty"`
	}{path.Join(home, file), offset, limit}
	return call{tool: "Read", input: in, subject: file, run: func(s *sandbox) (string, error) {
		data, err := os.ReadFile(s.path(file))
		if err != nil {
			return "", errToolUse("File does not exist.")
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		from := max(offset, 1)
		if from > len(lines) {
			return "", errToolUse(fmt.Sprintf("The file has only %d lines.", len(lines)))
		}
		to := len(lines)
		if limit > 0 {
			to = min(to, from-1+limit)
		}
		var out strings.Builder
		for i, l := range lines[from-1 : to] {
			fmt.Fprintf(&out, "%6d→%s\n", from+i, l)
		}
		return strings.TrimSuffix(out.String(), "\n"), nil
	}}
}

// write makes a file, or replaces it.
func write(file, content string) call {
	in := struct {
		FilePath string `json:"file_path"`
		Content  string `json:"content"`
	}{path.Join(home, file), content}
	return call{tool: "Write", input: in, subject: file, run: func(s *sandbox) (string, error) {
		answer := "File created successfully at: " + in.FilePath
		if _, err := os.Stat(s.path(file)); err == nil {
			answer = "The file " + in.FilePath + " has been updated successfully."
		}
		if err := os.MkdirAll(filepath.Dir(s.path(file)), 0o755); err != nil {
			return "", err
		}
		return answer, os.WriteFile(s.path(file), []byte(content), 0o644)
	}}
}

// edit replaces the only occurrence of a text in a file.
func edit(file, before, after string) call {
	in := struct {
		FilePath  string `json:"file_path"`
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
	}{path.Join(home, file), before, after}
	return call{tool: "Edit", input: in, subject: file, run: func(s *sandbox) (string, error) {
		return s.replace(file, before, after, false)
	}}
}

// editAll replaces every occurrence of a text in a file.
func editAll(file, before, after string) call {
	in := struct {
		ReplaceAll bool   `json:"replace_all"`
		FilePath   string `json:"file_path"`
		OldString  string `json:"old_string"`
		NewString  string `json:"new_string"`
	}{true, path.Join(home, file), before, after}
	return call{tool: "Edit", input: in, subject: file, run: func(s *sandbox) (string, error) {
		return s.replace(file, before, after, true)
	}}
}

func (s *sandbox) replace(file, before, after string, all bool) (string, error) {
	data, err := os.ReadFile(s.path(file))
	if err != nil {
		return "", errToolUse("File does not exist.")
	}
	switch n := strings.Count(string(data), before); {
	case n == 0:
		return "", errToolUse("String to replace not found in file.\nString: " + before)
	case n > 1 && !all:
		return "", errToolUse(fmt.Sprintf("Found %d matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: %s", n, before))
	}
	text := strings.ReplaceAll(string(data), before, after)
	return "The file " + path.Join(home, file) + " has been updated successfully.", os.WriteFile(s.path(file), []byte(text), 0o644)
}

// maxOutput is how many characters of a command's output an agent gets to see.
const maxOutput = 30_000

// bash runs a command in the repository.
func bash(description, command string) call {
	in := struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}{command, description}
	return call{tool: "Bash", input: in, subject: command, run: func(s *sandbox) (string, error) {
		cmd := exec.CommandContext(s.ctx, "bash", "-c", command)
		cmd.Dir, cmd.Env = s.path("."), s.env
		data, err := cmd.CombinedOutput()
		out := cut(strings.TrimRight(s.scrub(string(data)), "\n"))
		if err != nil {
			if cmd.ProcessState == nil {
				return "", fmt.Errorf("run bash: %w", err)
			}
			return "", errToolUse(strings.TrimSpace(fmt.Sprintf("Exit code %d\n%s", cmd.ProcessState.ExitCode(), out)))
		}
		return out, nil
	}}
}

// cut takes the middle out of a long output, at the ends of lines.
func cut(s string) string {
	if len(s) <= maxOutput {
		return s
	}
	head := s[:maxOutput/2]
	head = head[:strings.LastIndexByte(head, '\n')+1]
	tail := s[len(s)-maxOutput/2:]
	tail = tail[strings.IndexByte(tail, '\n'):]
	gone := strings.Count(s[len(head):len(s)-len(tail)], "\n") + 1 // the tail begins with the end of a line
	return fmt.Sprintf("%s\n... [%d lines truncated] ...\n%s", head, gone, tail)
}

// grep shows the lines that match, with their numbers.
func grep(pattern, dir string) call {
	in := struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path"`
		OutputMode string `json:"output_mode"`
		Numbers    bool   `json:"-n"`
	}{pattern, path.Join(home, dir), "content", true}
	return call{tool: "Grep", input: in, subject: pattern, run: func(s *sandbox) (string, error) {
		return s.search(pattern, dir, func(file string, n int, text string) string { return fmt.Sprintf("%s:%d:%s", file, n, text) })
	}}
}

// grepFiles names the files that hold a match.
func grepFiles(pattern, dir string) call {
	in := struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path"`
		OutputMode string `json:"output_mode"`
	}{pattern, path.Join(home, dir), "files_with_matches"}
	return call{tool: "Grep", input: in, subject: pattern, run: func(s *sandbox) (string, error) {
		return s.search(pattern, dir, func(file string, _ int, _ string) string { return path.Join(home, file) })
	}}
}

func (s *sandbox) search(pattern, dir string, show func(file string, n int, text string) string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", errToolUse(err.Error())
	}
	files, err := s.files(dir)
	if err != nil {
		return "", err
	}
	var out []string
	for _, f := range files {
		data, err := os.ReadFile(s.path(f))
		if err != nil {
			return "", err
		}
		for i, l := range strings.Split(string(data), "\n") {
			if re.MatchString(l) {
				out = append(out, show(f, i+1, l))
			}
		}
	}
	if out = slices.Compact(out); len(out) == 0 {
		return "No matches found", nil
	}
	return cut(strings.Join(out, "\n")), nil
}

// glob lists the files whose path matches, in their order; ** is any folder.
func glob(pattern string) call {
	in := struct {
		Pattern string `json:"pattern"`
	}{pattern}
	return call{tool: "Glob", input: in, subject: pattern, run: func(s *sandbox) (string, error) {
		files, err := s.files(".")
		if err != nil {
			return "", err
		}
		re := globPattern(pattern)
		var out []string
		for _, f := range files {
			if re.MatchString(f) {
				out = append(out, path.Join(home, f))
			}
		}
		if len(out) == 0 {
			return "No files found", nil
		}
		return strings.Join(out, "\n"), nil
	}}
}

func globPattern(pattern string) *regexp.Regexp {
	s := regexp.QuoteMeta(pattern)
	s = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(s)
	return regexp.MustCompile("^" + s + "$")
}

// files lists what lies under dir, relative to the repository, in order.
func (s *sandbox) files(dir string) (out []string, err error) {
	err = filepath.WalkDir(s.path(dir), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.IsDir():
			rel, err := filepath.Rel(s.path("."), p)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// todo is one task of a list.
type todo struct {
	Content string `json:"content"`
	Status  string `json:"status"`
	Active  string `json:"activeForm"`
}

// todos writes the list of tasks anew. Each is "x text", done; "> text", being
// done; or "- text", still to be done.
func todos(tasks ...string) call {
	states := map[byte]string{'x': "completed", '>': "in_progress", '-': "pending"}
	in := struct {
		Todos []todo `json:"todos"`
	}{}
	for _, t := range tasks {
		in.Todos = append(in.Todos, todo{t[2:], states[t[0]], "Working on: " + t[2:]})
	}
	return call{tool: "TodoWrite", input: in, subject: "tasks", run: func(*sandbox) (string, error) {
		return "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable", nil
	}}
}
