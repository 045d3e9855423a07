// Command buildcost measures what a cold build of the worker costs: the CPU seconds of
// go build with an empty build cache, over those of a program that imports only
// nats-server, nats.go and bbolt, and the size of the stripped binary.
//
//	make build-cost
//
// CPU seconds are user and system time of go build and of every process it started. Both
// programs are built one after the other in the same run, each in a cache of its own
// that is removed afterwards: another machine has other seconds and the same ratio.
// Modules are downloaded before the clock starts.
//
// It exits with 1 when the ratio or the size is above its bound.
package main
