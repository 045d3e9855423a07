package connect

import (
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// checkFiles reports missing files with their purpose, which nats.go does not name, and a certificate
// without its key.
func (o *Options) checkFiles() error {
	for _, f := range []struct{ path, what, hint string }{
		{o.Creds, "credentials", "it must be the .creds file of a user"},
		{o.CA, "certificate authority", "it must be a PEM file with the certificate of the authority that signed the server's"},
		{o.Cert, "certificate", "it must be a PEM file with this client's certificate"},
		{o.Key, "key", "it must be a PEM file with the key of this client's certificate"},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			return fmt.Errorf("read %s: %w; %s", f.what, err, f.hint)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return errors.New("a certificate and its key belong together: name both, or neither")
	}
	return nil
}

// identity returns options for the credentials of the client and the authority it trusts.
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
