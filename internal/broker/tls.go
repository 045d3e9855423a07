package broker

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/nats-io/nats.go"
)

// checkFiles finds what nats.go would tell without naming the flag, or not at all.
func (o *Options) checkFiles() error {
	for _, f := range []struct{ path, what, hint string }{
		{o.Creds, "credentials", "--creds names the .creds file of a user"},
		{o.CA, "certificate authority", "--tls-ca names a PEM file with the certificate of the authority that signed the server's"},
		{o.Cert, "certificate", "--tls-cert names a PEM file with this client's certificate"},
		{o.Key, "key", "--tls-key names a PEM file with the key of --tls-cert"},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			return fmt.Errorf("read %s: %w; %s", f.what, err, f.hint)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("a certificate needs its key: set both --tls-cert and --tls-key, or neither")
	}
	return nil
}

// identity says who connects, and whom it trusts.
func (o *Options) identity() []nats.Option {
	var opts []nats.Option
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	return opts
}

// tlsHint says what to do about a link that could not be encrypted.
func tlsHint(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	remote, alert := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, nats.ErrSecureConnRequired), unknown:
		return "; --tls-ca FILE names the certificate of the authority that signed the server's"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "; the server does not encrypt: leave --tls-ca out, or turn TLS on there"
	case alert && remote.Op == "remote error", errors.Is(err, nats.ErrTLS): // the other side's alert, or it hung up before that came
		return "; the server refuses this client's certificate: --tls-cert FILE and --tls-key FILE"
	default:
		return ""
	}
}
