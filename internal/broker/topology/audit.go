package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// AuditStream has the entries of the audit log, each under audit.<action>.<tenant>.
	AuditStream = "AUDIT"

	auditAge = 365 * 24 * time.Hour
	// mostAudit is about four million entries, leastAudit thirty thousand; then the oldest go. A new AUDIT has an
	// eighth of the log's bound, which a new log leaves free, or less where that is not to be had.
	mostAudit, leastAudit = 1 << 30, 8 << 20
	auditShare            = 8
	// mostOfKind bounds the entries of one kind and tenant, so that no tenant removes those of others by its own.
	mostOfKind = 100_000
)

// EnsureAudit creates the stream of the audit log where it is missing. A [StorageError] where there is no room.
func EnsureAudit(ctx context.Context, js jetstream.JetStream) error {
	there, err := lookUp(ctx, js, AuditStream)
	if there != nil || err != nil {
		return err
	}
	log, out, err := find(ctx, js)
	if err != nil {
		return fmt.Errorf("create %s: %w", AuditStream, err)
	}
	bound := int64(mostAudit)
	if most := log.CachedInfo().Config.MaxBytes; most > 0 {
		bound = min(bound, max(most/auditShare, leastAudit))
	}
	c := jetstream.StreamConfig{
		Name: AuditStream, Description: "compactd: who read and changed what", Subjects: []string{"audit.*.*"},
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxBytes: bound,
		MaxAge: auditAge, MaxMsgsPerSubject: mostOfKind, DenyDelete: true, DenyPurge: true, Replicas: out.CachedInfo().Config.Replicas,
	}
	_, err = createLargest(ctx, js, c, leastAudit, func(size int64) jetstream.StreamConfig {
		c.MaxBytes = size
		return c
	})
	return err
}
