// Package clustertest runs three NATS servers with clustered JetStream in this
// process, for tests of what a cluster does to those who use it.
//
//	c := clustertest.Start(t)
//	nc, err := broker.Connect(ctx, broker.Options{URL: c.URL()})
//	i := c.Leader(ctx, js, "OUTCOMES")
//	c.Cut(i)     // nothing reaches it any more, and nothing leaves it
//	c.Heal(i)
//	c.Kill(i)    // it dies with its links cut, so it takes leave of nobody
//	c.Restart(i)
//
// # Guarantees
//
// Every route has a proxy for each direction, and so has every node for its
// clients. Nodes advertise a dead address: gossip opens no route around a proxy.
//
// # Concurrency
//
// A [Cluster] is for the goroutine of its test.
package clustertest
