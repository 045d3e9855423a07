// Package brokertest holds helpers for the tests below internal/broker: an embedded server with the streams
// of compactd, and a link to a server that can lose a message.
//
//	e := brokertest.New(t)              // one server, four partitions, gone with the test
//	seq := e.Turn("session", "text")    // publishes one event
//	link := brokertest.NewWire(t, addr) // connect through link.URL()
//	lost := link.Arm(brokertest.LoseAnswer, "out.1.")
//
// # Concurrency
//
// An [Env] is for the goroutine of its test.
package brokertest
