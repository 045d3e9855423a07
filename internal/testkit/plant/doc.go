// Package plant stores what a hostile agent can store: messages whose headers look like
// those of the server, and blocks of headers that no client would write.
//
//	c, err := plant.Dial(url, nil)
//	seq, err := c.Publish("session.turn.acme.s1", "NATS/1.0\r\nStatus: 100\r\n\r\n", "")
//
// A block goes to the server byte by byte: it takes any, and checks none.
//
// # Concurrency
//
// A [Conn] belongs to one goroutine.
package plant
