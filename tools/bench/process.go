package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// process is a worker in a process of its own.
type process struct {
	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan struct{} // closed when it has
	why   error
}

func buildWorker(ctx context.Context, dir string) (bin string, err error) {
	bin = filepath.Join(dir, "worker")
	if out, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", bin, "compactd/cmd/worker").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the worker: %w: %s", err, out)
	}
	return bin, nil
}

// startProcess starts a worker on the environment's server, with one more variable and more
// arguments.
func (e environment) startProcess(ctx context.Context, bin, data, variable string, args ...string) (*process, error) {
	return startWorker(ctx, bin, variable, append([]string{"--nats", e.ClientURL(), "--data", data, "--http", "off", "--log-format", "json"}, args...)...)
}

// startWorker starts a worker, with one more variable.
func startWorker(ctx context.Context, bin, variable string, args ...string) (*process, error) {
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, bin, args...)
	p.cmd.Env = append(os.Environ(), variable, "NATS_URL=")
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.why = cmp.Or(p.cmd.Wait(), errors.New("exit status 0"))
		close(p.ended)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// err states why a worker ended that was to go on.
func (p *process) err() error {
	log := p.log.String()
	return fmt.Errorf("the worker ended: %w; its log: %s", p.why, log[max(0, len(log)-2000):])
}

// stopAll ends workers in good order: their partitions are free then.
func stopAll(ps []*process) {
	for _, p := range ps {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, p := range ps {
		<-p.ended
	}
}

// kill ends the worker at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}
