// Package freeport gives tests an address that a server can keep over its restarts.
//
// A port that the kernel gives (127.0.0.1:0) is free only until the next outgoing
// connection of any process takes it: a server that stops and comes back may find it
// taken. The ports given here are below the range that outgoing connections use, and
// out of a block that belongs to this process while it lives, so tests of several
// packages may run at once.
package freeport
