package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// AuditStream holds the entries of the audit log, each under audit.<action>.<tenant>.
	AuditStream = "AUDIT"

	auditAge = 365 * 24 * time.Hour
	// mostAudit holds about four million entries, leastAudit thirty thousand; a full stream drops the oldest. A new
	// AUDIT gets an eighth of the log's bound, which a new log leaves free, or less if the server has less space.
	mostAudit, leastAudit = 1 << 30, 8 << 20
	auditShare            = 8
	// mostOfKind limits the entries of one kind and tenant, so that no tenant displaces those of others.
	mostOfKind = 100_000
)

// EnsureAudit creates the stream of the audit log if it is missing. It returns a [StorageError] without space.
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
	_, err = createLargest(ctx, js, c, leastAudit, nil)
	return err
}
