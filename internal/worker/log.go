package worker

import "github.com/rs/zerolog"

// Names of the fields in the log.
const (
	fieldPartition  = "partition"
	fieldEpoch      = "epoch"
	fieldCursor     = "cursor"
	fieldEvents     = "events"
	fieldSessions   = "sessions"
	fieldTook       = "took"
	fieldTenant     = "tenant"
	fieldSession    = "session"
	fieldGeneration = "generation"
	fieldStages     = "stages"
	fieldBefore     = "tokens_before"
	fieldAfter      = "tokens_after"
	fieldReason     = "reason"
	fieldCode       = "code"
	fieldSeq        = "seq"
	fieldKind       = "kind"
	fieldStep       = "step"
	fieldLane       = "lane"
	fieldMoved      = "moved"
)

// LogListener writes what operators want to read. It logs no text of a
// conversation.
func LogListener(log zerolog.Logger) Listener {
	return Listener{
		PartitionAcquired: func(e PartitionAcquired) {
			log.Info().Int(fieldPartition, e.Partition).Uint64(fieldEpoch, e.Epoch).Uint64(fieldCursor, uint64(e.Cursor)).
				Int(fieldEvents, e.Replayed).Int(fieldSessions, e.Sessions).Dur(fieldTook, e.Took).Msg("partition acquired")
		},
		PartitionLost: func(e PartitionLost) {
			level := zerolog.InfoLevel
			if e.Err != nil {
				level = zerolog.ErrorLevel
			}
			log.WithLevel(level).Err(e.Err).Int(fieldPartition, e.Partition).Msg("partition released")
		},
		Compacted: func(e Compacted) {
			b, text := e.Body, "session compacted"
			if !b.Compacted {
				text = "session not compacted"
			}
			log.Info().Int(fieldPartition, e.Partition).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).
				Int64(fieldGeneration, b.Generation).Str(fieldReason, string(b.Reason)).Str(fieldCode, string(b.Code)).
				Any(fieldStages, b.StagesUsed).Int64(fieldBefore, b.TokensBefore).Int64(fieldAfter, b.TokensAfter).Msg(text)
		},
		SetAside: func(e SetAside) {
			log.Warn().Int(fieldPartition, e.Partition).Err(e.Reason).Str(fieldMoved, e.Moved).Msg("ledger file set aside, rebuilding")
		},
		Rejected: func(e Rejected) {
			log.Warn().Int(fieldPartition, e.Partition).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).
				Uint64(fieldSeq, e.Body.Seq).Str(fieldKind, string(e.Body.Kind)).Str(fieldCode, string(e.Body.Code)).Msg("event rejected")
		},
		SummaryDone: func(e SummaryDone) {
			level := zerolog.InfoLevel
			if e.Failure != "" {
				level = zerolog.WarnLevel
			}
			log.WithLevel(level).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).Str(fieldLane, string(e.Lane)).
				Str(fieldCode, e.Failure).Dur(fieldTook, e.Took).Msg("summary done")
		},
		Interrupted: func(e Interrupted) {
			log.Warn().Int(fieldPartition, e.Partition).Str(fieldStep, e.Step).Err(e.Err).Msg("interrupted, trying again")
		},
	}
}
