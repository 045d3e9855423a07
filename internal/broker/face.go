package broker

import (
	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
)

// Names of the packages below, until their callers import those.
type (
	BeyondEndError = stream.BeyondEndError
	Cause          = connect.Cause
	Claim          = commit.Claim
	Committer      = commit.Committer
	CompactionSize = stream.CompactionSize
	ConnectError   = connect.Error
	Erasure        = erase.Erasure
	GoneError      = stream.GoneError
	Holder         = coord.Holder
	IDTakenError   = stream.IDTakenError
	Inspection     = topology.Inspection
	Lease          = coord.Lease
	Leases         = coord.Leases
	LogFrom        = stream.LogFrom
	LogMessage     = stream.LogMessage
	Marker         = commit.Marker
	Member         = coord.Member
	Members        = coord.Members
	Message        = commit.Message
	Mismatch       = topology.Mismatch
	NoMarkerError  = commit.NoMarkerError
	NotErasedError = erase.NotErasedError
	Options        = connect.Options
	RefusedError   = erase.RefusedError
	Selection      = stream.Selection
	Snapshot       = snapshot.Snapshot
	Snapshots      = snapshot.Store
	StorageError   = topology.StorageError
	StoreFullError = commit.StoreFullError
	Stored         = commit.Stored
	StreamState    = topology.StreamState
	Streams        = topology.Streams
	TooLargeError  = commit.TooLargeError
	Topology       = topology.Config
	TopologyError  = topology.MismatchError
	Upload         = snapshot.Upload
)

const (
	CanaryStream      = topology.CanaryStream
	CanarySubject     = topology.CanarySubject
	CauseAuthority    = connect.CauseAuthority
	CauseCertificate  = connect.CauseCertificate
	CauseOther        = connect.CauseOther
	CausePlain        = connect.CausePlain
	CauseServer       = connect.CauseServer
	CauseUser         = connect.CauseUser
	DefaultDuplicates = topology.DefaultDuplicates
	DefaultMaxAge     = topology.DefaultMaxAge
	DefaultPartitions = topology.DefaultPartitions
	HeaderMarker      = commit.HeaderMarker
	Heartbeat         = stream.Heartbeat
	LeasesBucket      = topology.LeasesBucket
	LogStream         = topology.LogStream
	MaxBatch          = commit.MaxBatch
	MembersBucket     = topology.MembersBucket
	OutcomesStream    = topology.OutcomesStream
	SnapshotsBucket   = topology.SnapshotsBucket
)

var (
	ErrDiverged         = commit.ErrDiverged
	ErrErased           = erase.ErrErased
	ErrFenced           = commit.ErrFenced
	ErrHeld             = coord.ErrHeld
	ErrLeaseLost        = coord.ErrLeaseLost
	ErrNoConfig         = commit.ErrNoConfig
	ErrNoSnapshot       = snapshot.ErrNone
	ErrNoStreams        = topology.ErrNoStreams
	ErrSnapshotGone     = snapshot.ErrGone
	ErrSnapshotMoved    = snapshot.ErrMoved
	AwaitCursor         = commit.AwaitCursor
	AwaitServer         = jsapi.AwaitServer
	Behind              = stream.Behind
	Canary              = topology.Canary
	CompactedBytes      = stream.CompactedBytes
	Connect             = connect.Open
	ConsumeLog          = stream.ConsumeLog
	Describe            = topology.Describe
	Ensure              = topology.Ensure
	Erase               = erase.Erase
	GetConfig           = commit.GetConfig
	GetLog              = stream.GetLog
	InProcess           = jsapi.InProcess
	Inspect             = topology.Inspect
	JobConsumer         = stream.JobConsumer
	JobsWaiting         = stream.JobsWaiting
	LastForget          = erase.LastForget
	LastMarker          = commit.LastMarker
	LastOf              = stream.LastOf
	LastUntil           = stream.LastUntil
	MaxPayload          = connect.MaxPayload
	MayRead             = stream.MayRead
	NewLeases           = coord.NewLeases
	NewMembers          = coord.NewMembers
	NewSnapshots        = snapshot.New
	NoAnswer            = jsapi.NoAnswer
	Oldest              = stream.Oldest
	ParseMarker         = commit.ParseMarker
	PendingErasures     = erase.Pending
	PublishOnce         = stream.PublishOnce
	PublishUnlessErased = erase.PublishUnlessErased
	PutConfig           = commit.PutConfig
	Read                = stream.Read
	ReadCompactionSizes = stream.ReadCompactionSizes
	ReadStream          = stream.ReadStream
	ReadSubject         = stream.ReadSubject
	RequestErasure      = erase.Request
	State               = topology.State
	TakeOver            = commit.TakeOver
	Unreachable         = jsapi.Unreachable
	Waiting             = stream.Waiting
)
