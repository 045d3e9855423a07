package broker

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"
)

// Trouble is what kept a first connect from succeeding, as far as it is known. Who
// has flags or settings against it names them; the error does not know its caller's.
type Trouble string

// What may be the trouble.
const (
	TroubleServer      Trouble = "server"      // nobody answers there
	TroubleOther       Trouble = "other"       // a program that is no NATS server listens there
	TroubleUser        Trouble = "user"        // the server wants other credentials
	TroubleAuthority   Trouble = "authority"   // it encrypts, and is not trusted here
	TroublePlain       Trouble = "plain"       // it does not encrypt
	TroubleCertificate Trouble = "certificate" // it wants a certificate of this client, or another one
)

// advice is what to do, whatever the settings are called.
var advice = map[Trouble]string{
	TroubleServer:      "is a NATS server running there?",
	TroubleOther:       "name the client port of a NATS server, which is 4222 by default",
	TroubleUser:        "the server wants other credentials",
	TroubleAuthority:   "the server encrypts: trust the authority that signed its certificate",
	TroublePlain:       "the server does not encrypt: connect without TLS, or turn it on there",
	TroubleCertificate: "the server refuses this client's certificate, or wants one",
}

// ConnectError says where a first connect failed, and why. Its text ends with what to
// do, and holds no password.
type ConnectError struct {
	Target  string  // the address, or several, without passwords
	Trouble Trouble // "" when it is not known
	Found   string  // what is there, or who was refused, as a clause; "" when it is not known
	Err     error
}

// Error names the address, the cause and what to do.
func (e *ConnectError) Error() string {
	text := fmt.Sprintf("connect to %s: %v", e.Target, e.Err)
	if e.Found != "" {
		text += "; " + e.Found
	}
	if a := advice[e.Trouble]; a != "" {
		text += "; " + a
	}
	return text
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// failed is the error of a first connect.
func (o *Options) failed(ctx context.Context, err error) error {
	t := trouble(err)
	found := ""
	if ctx.Err() == nil {
		found, t = o.found(ctx, t)
	}
	return &ConnectError{o.Target(), t, found, err}
}

func trouble(err error) Trouble {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	link, broken := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, nats.ErrSecureConnRequired), unknown:
		return TroubleAuthority
	case errors.Is(err, nats.ErrSecureConnWanted):
		return TroublePlain
	case broken && link.Op == "remote error", errors.Is(err, nats.ErrTLS): // the other side's alert, or it hung up before that came
		return TroubleCertificate
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), broken && link.Op == "dial": // such as a name that nobody knows
		return TroubleServer
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return TroubleUser
	default:
		return ""
	}
}
