package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deadline bounds every wait.
const deadline = time.Minute

// server is a process of bin/worker with an embedded NATS server.
type server struct {
	t     *testing.T
	data  string
	token string
	join  string // the server of another worker, in place of one of its own
	url   string // of the page
	nats  string
	cmd   *exec.Cmd
}

// startWorker starts a worker on free ports.
func startWorker(t *testing.T, token string) *server {
	t.Helper()
	s := &server{t: t, data: filepath.Join(t.TempDir(), "data"), token: token}
	s.start("127.0.0.1:-1", "127.0.0.1:-1")
	t.Cleanup(s.stop)
	return s
}

// beside starts another worker on the server of s.
func (s *server) beside() *server {
	s.t.Helper()
	other := &server{t: s.t, data: filepath.Join(s.t.TempDir(), "data"), join: s.nats}
	other.start("", "127.0.0.1:-1")
	s.t.Cleanup(other.stop)
	return other
}

// start runs the process until it is ready.
func (s *server) start(listen, http string) {
	s.t.Helper()
	server := []string{"--listen", listen}
	if s.join != "" {
		server = []string{"--nats", s.join}
	}
	s.cmd = exec.Command(program(s.t, "worker"), append(server, "--data", s.data, "--http", http, "--log-format", "json", "--partitions", "4")...)
	for _, v := range os.Environ() { // no setting of another worker
		if !strings.HasPrefix(v, "COMPACTD_") && !strings.HasPrefix(v, "NATS_URL=") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	if s.token != "" {
		s.cmd.Env = append(s.cmd.Env, "COMPACTD_HTTP_TOKEN="+s.token)
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	var log bytes.Buffer
	var mu sync.Mutex
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Message, HTTP, NATS string }
			_ = json.Unmarshal(lines.Bytes(), &line)
			mu.Lock()
			log.WriteString(lines.Text() + "\n")
			mu.Unlock()
			if line.Message == "ready" {
				s.url, s.nats = "http://"+line.HTTP, line.NATS
				ready <- true
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(deadline):
		mu.Lock()
		defer mu.Unlock()
		s.t.Fatalf("the worker did not become ready:\n%s", log.String())
	}
}

// stop ends the process; start may follow.
func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// publish runs a command of publisher with an input.
func (s *server) publish(input string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(program(s.t, "publisher"), append([]string{"--nats", s.nats}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("publisher %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// send publishes one turn of a session, by its name.
func (s *server) send(tenant, session string, turn any) {
	s.t.Helper()
	data, err := json.Marshal(turn)
	if err != nil {
		s.t.Fatal(err)
	}
	if !plain.MatchString(session) {
		session = "b64-" + base64.RawURLEncoding.EncodeToString([]byte(session))
	}
	s.publish(string(data), "send", "--tenant", tenant, "--session", session)
}

// plain is a name that is its own id.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// examples replays the sessions of examples/sessions.
func (s *server) examples() {
	s.t.Helper()
	s.publish("", "replay", filepath.Join(root(s.t), "examples", "sessions"))
}

// program is the path of one of the programs under test.
func program(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("BIN")
	if dir == "" {
		dir = filepath.Join(root(t), "bin")
	}
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s is not built: run make test-console", file)
	}
	return file
}

// root is the directory of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
