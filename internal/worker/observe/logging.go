package observe

import (
	"github.com/rs/zerolog"

	"compactd/internal/events"
)

// Names of the fields in the log.
const (
	fieldPartition  = "partition"
	fieldEpoch      = "epoch"
	fieldCursor     = "cursor"
	fieldEvents     = "events"
	fieldSnapshot   = "snapshot"
	fieldBytes      = "bytes"
	fieldSessions   = "sessions"
	fieldTook       = "took_ms"
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
	fieldModel      = "model"
	fieldInput      = "input_tokens"
	fieldOutput     = "output_tokens"
	fieldAttempt    = "attempt"
	fieldPause      = "pause_ms"
	fieldOmitted    = "messages_omitted"
	fieldBound      = "bound_bytes"
	fieldCount      = "count"
	fieldAcquired   = "acquired"
	fieldRestored   = "from_snapshot"
	fieldMessages   = "messages"
	fieldTo         = "to"
)

// LogListener writes the log for operators. It logs no text of a conversation. It logs all partitions that a
// worker acquires at its start in one line.
func LogListener(log zerolog.Logger) Listener {
	starting := &starting{log: log}
	return Listener{
		PartitionAcquired: starting.acquired,
		ShareAcquired:     func(ShareAcquired) { starting.end() },
		PartitionFailed: func(e PartitionFailed) {
			starting.write() // a partition fails after it was acquired
			log.Error().Err(e.Err).Int(fieldPartition, e.Partition).Dur(fieldPause, e.Pause).Msg("partition failed, opening it again")
		},
		PartitionReleased: func(e PartitionReleased) {
			starting.write() // a partition is released after it was acquired
			level := zerolog.InfoLevel
			if e.Err != nil {
				level = zerolog.ErrorLevel
			}
			line := log.WithLevel(level).Err(e.Err).Int(fieldPartition, e.Partition)
			if e.Reason != "" {
				line.Str("reason", e.Reason)
			}
			line.Msg("partition released")
		},
		Fetched: func(e Fetched) {
			log.Warn().Int(fieldPartition, e.Partition).Uint64(fieldSeq, uint64(e.Seq)).Err(e.Err).Msg("event read by its sequence")
		},
		Compacted: func(e Compacted) {
			b, text := e.Body, "session compacted"
			if !b.Compacted {
				text = "session not compacted"
			}
			level := zerolog.InfoLevel
			if e.Invalid != nil {
				level, text = zerolog.ErrorLevel, "history not valid for its provider, stored without messages"
			}
			line := log.WithLevel(level).Err(e.Invalid).Int(fieldPartition, e.Partition).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).
				Int64(fieldGeneration, b.Generation).Str(fieldReason, string(b.Reason)).Str(fieldCode, string(b.Code)).
				Any(fieldStages, b.StagesUsed).Int64(fieldBefore, b.TokensBefore).Int64(fieldAfter, b.TokensAfter)
			if e.Omitted != "" {
				line = line.Str(fieldOmitted, e.Omitted)
			}
			line.Msg(text)
		},
		OutcomesLimited: func(e OutcomesLimited) {
			log.Warn().Str(fieldTenant, e.Tenant).Str(fieldReason, e.Reason).Int64(fieldBytes, e.Bytes).Int64(fieldBound, e.Bound).Msg("outcomes limited: compactions go out without messages")
		},
		Snapshotted: func(e Snapshotted) {
			log.Info().Int(fieldPartition, e.Partition).Uint64(fieldCursor, uint64(e.Cursor)).Int64(fieldBytes, e.Bytes).Dur(fieldTook, e.Took).Msg("snapshot stored")
		},
		Quarantined: func(e Quarantined) {
			log.Warn().Int(fieldPartition, e.Partition).Err(e.Reason).Str(fieldMoved, e.Moved).Msg("ledger file quarantined, rebuilding")
		},
		Foreign: func(e Foreign) {
			log.Warn().Int(fieldPartition, e.Partition).Int(fieldMessages, e.Messages).Uint64(fieldSeq, e.First).Uint64(fieldTo, e.Last).
				Msg("outcomes that no worker committed were skipped")
		},
		Rejected: func(e Rejected) {
			log.Warn().Int(fieldPartition, e.Partition).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).
				Uint64(fieldSeq, e.Body.Seq).Str(fieldKind, string(e.Body.Kind)).Str(fieldCode, string(e.Body.Code)).Msg("event rejected")
		},
		Noted: func(e Noted) {
			fits := e.Note.Code == events.CodeTargetUnreached // the next call still fits: no warning
			log.WithLevel(warnIf(!fits)).Int(fieldPartition, e.Partition).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).
				Str(fieldCode, string(e.Note.Code)).Msg("event noted")
		},
		ModelCalled: func(e ModelCalled) {
			log.WithLevel(warnIf(e.Err != nil)).Err(e.Err).Str(fieldModel, e.Model).
				Int64(fieldInput, e.Usage.Input).Int64(fieldOutput, e.Usage.Output).
				Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).Str(fieldLane, string(e.Lane)).Msg("model called")
		},
		OverQuota: func(e OverQuota) {
			log.Warn().Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).Str(fieldLane, string(e.Lane)).
				Str(fieldModel, e.Model).Msg("model quota used up")
		},
		SummaryDelayed: func(e SummaryDelayed) {
			log.Warn().Err(e.Err).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).Str(fieldLane, string(e.Lane)).
				Uint64(fieldAttempt, e.Attempt).Dur(fieldPause, e.Pause).Msg("summary delayed")
		},
		SummaryDone: func(e SummaryDone) {
			log.WithLevel(warnIf(e.Failure != "")).Str(fieldTenant, e.Address.Tenant).Str(fieldSession, e.Address.Session).Str(fieldLane, string(e.Lane)).
				Str(fieldCode, e.Failure).Str(fieldModel, e.Model).Int64(fieldInput, e.Usage.Input).Int64(fieldOutput, e.Usage.Output).
				Uint64(fieldAttempt, e.Attempt).Dur(fieldTook, e.Took).Msg("summary done")
		},
		Retrying: func(e Retrying) {
			of := map[string]any{}
			if e.Partition >= 0 { // -1: no partition
				of[fieldPartition] = e.Partition
			}
			log.Warn().Fields(of).Str(fieldStep, e.Step).Err(e.Err).Msg("retrying")
		},
	}
}

// warnIf returns the level warn after a failure, else info.
func warnIf(failed bool) zerolog.Level {
	if failed {
		return zerolog.WarnLevel
	}
	return zerolog.InfoLevel
}
