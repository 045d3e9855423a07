package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"compactd/internal/broker/connect"
)

// Flags are how a process shows who it is to a server that requires it. Embed them in a
// command line.
type Flags struct {
	Creds    File   `env:"COMPACTD_CREDS" placeholder:"FILE" help:"Credentials (.creds)."`
	User     string `env:"COMPACTD_NATS_USER" placeholder:"NAME" help:"User of the server, if it identifies users by passwords."`
	Password Secret `env:"COMPACTD_NATS_PASSWORD" placeholder:"TEXT" help:"Password of --user; in the environment no other user of this machine can read it."`
	TLSCA    File   `name:"tls-ca" env:"COMPACTD_TLS_CA" placeholder:"FILE" help:"Encrypt the connection, and trust the certificates that this authority (PEM) has signed."`
	TLSCert  File   `name:"tls-cert" env:"COMPACTD_TLS_CERT" placeholder:"FILE" help:"Certificate (PEM) of this client, if the server requires one."`
	TLSKey   File   `name:"tls-key" env:"COMPACTD_TLS_KEY" placeholder:"FILE" help:"Key (PEM) of --tls-cert."`
}

// File is the path of a file that is there, or "": a variable that is set to nothing
// is one that is not set.
type File string

// UnmarshalText finds a file that is not there.
func (f *File) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	path := kong.ExpandPath(string(text))
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory, not a file", path)
	}
	*f = File(path)
	return nil
}

// Secret is a text without the end of its line: a variable may have the content of a file, as in Kubernetes.
type Secret string

// UnmarshalText takes the end of a line away.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(bytes.TrimRight(text, "\r\n"))
	return nil
}

// With returns o with the identity of this process.
func (f *Flags) With(o connect.Options) connect.Options {
	o.Creds, o.User, o.Password = string(f.Creds), f.User, string(f.Password)
	o.CA, o.Cert, o.Key = string(f.TLSCA), string(f.TLSCert), string(f.TLSKey)
	return o
}

// Args are the flags by which another program of ours shows the same identity, but for
// the password.
func (f *Flags) Args() (args []string) {
	for _, a := range [...]struct{ name, value string }{
		{"creds", string(f.Creds)}, {"user", f.User}, {"tls-ca", string(f.TLSCA)}, {"tls-cert", string(f.TLSCert)}, {"tls-key", string(f.TLSKey)},
	} {
		if a.value != "" {
			args = append(args, "--"+a.name, a.value)
		}
	}
	return args
}

// hints name the flags that may help.
var hints = map[connect.Cause]string{
	connect.CauseServer:      "Name another server with --nats or NATS_URL.",
	connect.CauseOther:       "Name the client port with --nats or NATS_URL: 4222 by default. 8222 is the monitoring of NATS, 8223 the HTTP of a worker.",
	connect.CauseUser:        "Give --creds FILE, or --user NAME with its password in COMPACTD_NATS_PASSWORD.",
	connect.CauseAuthority:   "Name the certificate (PEM) of the authority that signed the server's with --tls-ca FILE.",
	connect.CausePlain:       "Leave --tls-ca out, and write nats:// instead of tls://, or turn TLS on in the server.",
	connect.CauseClosed:      "Try again in a moment. If the server requires certificates of its clients, name one with --tls-cert FILE and --tls-key FILE.",
	connect.CauseCertificate: "Name a certificate that the server's authority has signed, and its key, with --tls-cert FILE and --tls-key FILE.",
}

// Hint states which flags may help against the error of a [connect.Open]; "" where
// none is known.
func Hint(err error) string {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return ""
	}
	return hints[e.Cause]
}
