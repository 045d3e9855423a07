package erase

import (
	"testing"

	"compactd/internal/broker/brokertest"
)

// env is a server with the streams, and what the tests of this package do with it.
type env struct{ *brokertest.Env }

func newEnv(t *testing.T) *env { return &env{brokertest.New(t)} }
