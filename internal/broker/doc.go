// Package broker holds compactd's use of NATS, one package for each concern:
//
//	retry      the one loop of attempts, with pauses
//	connect    the connection: options, credentials, errors of a connect
//	jsapi      one request to JetStream: error codes, retries, reads from a leader
//	topology   the streams, buckets and stores: names, creation, checks, state
//	stream     reading: the log in order, parts of a stream, single messages
//	request    requests to workers over NATS, and the pages of their answers
//	commit     writing outcomes: take-over, the fenced commit, the marker, configs
//	coord      the leases and members of a fleet of workers
//	snapshot   copies of ledger files in the object store
//	erase      the erasure of a session
//	audit      the audit log of operators
//	embedded   a NATS server in this process
//
// Imports go up this list: commit may import stream, stream may not import commit. Only embedded
// links a server. brokertest is for tests.
//
//	srv, err := embedded.Start(embedded.Config{Dir: dir})   // or none: an external server
//	nc, err := connect.Open(ctx, connect.Options{InProcess: srv, Name: "worker"})
//	js, err := jetstream.New(nc)
//	streams, err := topology.Ensure(ctx, js, topology.Config{CreateBytes: srv.StreamBytes()})
//	com, found, err := commit.TakeOver(ctx, nc, commit.Claim{Partition: 3, Owner: id, Config: hash})
//	stop, err := stream.ConsumeLog(ctx, js, stream.LogFrom{Partitions: []int{3}, Seq: found.Cursor + 1}, decide)
//	err = com.Commit(ctx, outcomes, commit.Marker{Cursor: seq, Config: hash})
//
// # Terms
//
// The log is the stream SESSIONS, which holds the events of agents, by partition. The stream OUTCOMES
// holds the outcomes of workers. A copy is one replica of a stream in a cluster, and the leader
// is the copy that takes writes. The tests in this directory run against a cluster of three
// servers.
package broker
