package stream

import (
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
)

// env is a server with the streams, and what the tests of this package do with it.
type env struct{ *brokertest.Env }

func newEnv(t *testing.T) *env { return &env{brokertest.New(t)} }

func openEnv(t *testing.T, dir string, c topology.Config) *env {
	return &env{brokertest.Open(t, dir, c)}
}
