package inspect

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
)

// written are subjects that workers publish to. The first is that of leases: a user that may not
// write it is no worker's.
var written = []string{
	"$KV." + topology.LeasesBucket + ".doctor",
	"$KV." + topology.MembersBucket + ".doctor",
	"$KV." + topology.SharesBucket + ".doctor",
	"$KV." + topology.PrefixesBucket + ".doctor.check",
	"$KV." + topology.PoliciesBucket + ".doctor",
	"$JS.API.STREAM.CREATE." + topology.StreamOf(topology.PoliciesBucket),
	"$JS.API.STREAM.CREATE." + topology.AuditStream,
	"$O." + topology.SnapshotsBucket + ".C.doctor",
	"audit.doctor.check",
	"out.doctor.check",
	"session.turn.doctor.check",
	"session.overflow.doctor.check",
	"session.summary.doctor.check",
	"session.idle.doctor.check",
	"session.branch.doctor.check",
	"session.end.doctor.check",
	"session.forget.doctor.check",
}

// accessWait bounds one round trip to the server.
const accessWait = 10 * time.Second

// access checks that the user of a worker may write all that workers write: accounts of a
// version before lack what came since. Nothing is stored.
func (d *doctor) access(ctx context.Context) {
	var denied []string
	for i, subject := range written {
		refused, err := d.refused(ctx, subject)
		switch {
		case err != nil:
			d.problem("access", "", "%s: %v", subject, err)
			return
		case refused && i == 0:
			d.note("access", "run doctor as the user of the workers to check what it may write", "this user is not that of a worker")
			return
		case refused:
			denied = append(denied, subject)
		}
	}
	if len(denied) > 0 {
		d.problem("access", "allow what the user worker has in deploy/cluster/accounts.conf, and reload the server", "this user may not publish to %s", strings.Join(denied, ", "))
		return
	}
	d.ok("access", "this user may write what workers write")
}

// refused reports whether this user may not publish to a subject. The message
// has a condition that no stream meets, and no body.
func (d *doctor) refused(ctx context.Context, subject string) (bool, error) {
	if err := d.Conn.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{
		jetstream.ExpectedLastSeqHeader: {strconv.FormatUint(math.MaxInt64, 10)},
	}}); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, accessWait)
	defer cancel()
	if err := d.Conn.FlushWithContext(ctx); err != nil { // a refusal comes before the answer
		return false, err
	}
	err := d.Conn.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(`"`+subject+`"`)), nil
}
