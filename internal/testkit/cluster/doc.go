// Package cluster runs three NATS servers with clustered JetStream, each in a
// process of its own, for tests of what a cluster does to those who use it.
//
//	c := cluster.Start(t)
//	nc, err := connect.Open(ctx, connect.Options{URL: c.URL()})
//	i := c.Leader(ctx, js, "OUTCOMES")
//	c.Cut(i)     // nothing reaches it any more, and nothing leaves it
//	c.Heal(i)
//	c.Kill(i)    // kill -9
//	c.Restart(i)
//
// # Guarantees
//
// Every route has a proxy for each direction, and so has every node for its
// clients. Nodes advertise an unreachable address: gossip opens no route around a proxy.
//
// The processes are this test binary again, which is a node when a variable of the environment
// is set. They end with the test, and with the process that runs it.
//
// # Concurrency
//
// A [Cluster] is for the goroutine of its test.
package cluster
