package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// nodeEnv makes a test binary that imports this package a node: its [node] in JSON.
const nodeEnv = "COMPACTD_CLUSTER_NODE"

// node is one server, and what its process is reported.
type node struct {
	Name        string
	Port        int // of its clients
	ClusterPort int
	Dir         string
	Routes      []string

	cmd    *exec.Cmd // nil while it is killed
	parent io.Closer // the node ends when this is closed
}

// A child is no test: it serves and never comes back.
func init() {
	text := os.Getenv(nodeEnv)
	if text == "" {
		return
	}
	var n node
	err := json.Unmarshal([]byte(text), &n)
	if err == nil {
		err = n.serve()
	}
	fmt.Fprintln(os.Stderr, "cluster node:", err)
	os.Exit(1)
}

// serve runs the server until its parent is gone.
func (n *node) serve() error {
	var routes []*url.URL
	for _, r := range n.Routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: n.Dir, JetStreamMaxStore: 4 << 30, JetStreamMaxMemory: 64 << 20,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: n.ClusterPort, Advertise: unreachable, NoAdvertise: true},
		Routes:  routes,
	})
	if err != nil {
		return err
	}
	s.Start()
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	return errors.Join(errors.New("the parent is gone"), err)
}

// start runs the node in a process of its own.
func (n *node) start() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	n.cmd = exec.Command(os.Args[0])
	n.cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	n.cmd.Stderr = os.Stderr
	if n.parent, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	return n.cmd.Start()
}

// kill ends the process as a crash would, and waits until it is gone.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill() // it may have ended by itself
	_ = n.cmd.Wait()         // of a kill
	_ = n.parent.Close()
	n.cmd = nil
}

// startLimit bounds how long servers take to start and to find each other.
const startLimit = time.Minute
