package connect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"
)

// Cause is the cause of a failed first connect. The caller adds the names of its flags or
// settings that may help; the error does not contain them.
type Cause string

// Causes of a failed connect.
const (
	CauseServer      Cause = "server"      // no answer there
	CauseOther       Cause = "other"       // another program than a NATS server listens there
	CauseUser        Cause = "user"        // the server requires other credentials
	CauseAuthority   Cause = "authority"   // it encrypts, and its authority is not trusted
	CausePlain       Cause = "plain"       // it does not encrypt
	CauseCertificate Cause = "certificate" // it requires a certificate of this client, or another one
	CauseClosed      Cause = "closed"      // it closed an encrypted connection: it is starting, or CauseCertificate
)

// advice is the advice for a cause, without names of settings.
var advice = map[Cause]string{
	CauseServer:      "is a NATS server running there?",
	CauseOther:       "name the client port of a NATS server, which is 4222 by default",
	CauseUser:        "the server requires other credentials",
	CauseAuthority:   "the server encrypts: trust the authority that signed its certificate",
	CausePlain:       "the server does not encrypt: connect without TLS, or turn it on there",
	CauseCertificate: "the server refuses this client's certificate, or requires one",
	CauseClosed:      "the server is starting, or it refuses this client's certificate, or requires one",
}

// Error reports a failed first connect. Its text ends with advice and contains no password.
type Error struct {
	Target string // one or more addresses, without passwords
	Cause  Cause  // "" if unknown
	Found  string // a clause about the program there or the refused user; "" if unknown
	Err    error
}

// Error returns the address, the cause and the advice.
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

// failed returns the error of a first connect.
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
	case broken && link.Op == "remote error": // a TLS alert of the server
		return CauseCertificate
	case errors.Is(err, nats.ErrTLS):
		return CauseClosed
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), broken && link.Op == "dial": // such as an unknown host name
		return CauseServer
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return CauseUser
	default:
		return ""
	}
}
