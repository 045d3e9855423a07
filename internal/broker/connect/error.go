package connect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"
)

// Cause is why a first connect failed, as far as it is known. A caller with flags or
// settings against it names them; the error does not contain the caller's names.
type Cause string

// Causes of a failed connect.
const (
	CauseServer      Cause = "server"      // no answer there
	CauseOther       Cause = "other"       // another program than a NATS server listens there
	CauseUser        Cause = "user"        // the server requires other credentials
	CauseAuthority   Cause = "authority"   // it encrypts, and is not trusted here
	CausePlain       Cause = "plain"       // it does not encrypt
	CauseCertificate Cause = "certificate" // it requires a certificate of this client, or another one
	CauseClosed      Cause = "closed"      // it encrypted, then closed the connection: it starts, or as above
)

// advice is what to do, whatever the settings are called.
var advice = map[Cause]string{
	CauseServer:      "is a NATS server running there?",
	CauseOther:       "name the client port of a NATS server, which is 4222 by default",
	CauseUser:        "the server requires other credentials",
	CauseAuthority:   "the server encrypts: trust the authority that signed its certificate",
	CausePlain:       "the server does not encrypt: connect without TLS, or turn it on there",
	CauseCertificate: "the server refuses this client's certificate, or requires one",
	CauseClosed:      "the server is starting, or it refuses this client's certificate, or requires one",
}

// Error is where a first connect failed, and why. Its text ends with what to
// do, and holds no password.
type Error struct {
	Target string // the address, or several, without passwords
	Cause  Cause  // "" when it is not known
	Found  string // what is there, or who was refused, as a clause; "" when it is not known
	Err    error
}

// Error names the address, the cause and what to do.
func (e *Error) Error() string {
	text := fmt.Sprintf("connect to %s: %v", e.Target, e.Err)
	if e.Found != "" {
		text += "; " + e.Found
	}
	if a := advice[e.Cause]; a != "" {
		text += "; " + a
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// failed is the error of a first connect.
func (o *Options) failed(ctx context.Context, err error) error {
	t := causeOf(err)
	found := ""
	if ctx.Err() == nil {
		found, t = o.found(ctx, t)
	}
	return &Error{o.Target(), t, found, err}
}

func causeOf(err error) Cause {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	link, broken := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, nats.ErrSecureConnRequired), unknown:
		return CauseAuthority
	case errors.Is(err, nats.ErrSecureConnWanted):
		return CausePlain
	case broken && link.Op == "remote error": // the other side's alert
		return CauseCertificate
	case errors.Is(err, nats.ErrTLS):
		return CauseClosed
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), broken && link.Op == "dial": // such as a name that cannot be resolved
		return CauseServer
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return CauseUser
	default:
		return ""
	}
}
