package main

import "compactd/internal/broker"

// access is how this process shows who it is to a server that asks.
type access struct {
	Creds    string `env:"COMPACTD_CREDS" type:"existingfile" placeholder:"FILE" help:"Credentials (.creds)."`
	User     string `env:"COMPACTD_NATS_USER" placeholder:"NAME" help:"User of the server, where it knows users by passwords."`
	Password string `env:"COMPACTD_NATS_PASSWORD" placeholder:"TEXT" help:"Password of --user; in the environment no other user of this machine can read it."`
	TLSCA    string `name:"tls-ca" env:"COMPACTD_TLS_CA" type:"existingfile" placeholder:"FILE" help:"Encrypt the connection, and trust the certificates that this authority (PEM) has signed."`
	TLSCert  string `name:"tls-cert" env:"COMPACTD_TLS_CERT" type:"existingfile" placeholder:"FILE" help:"Certificate (PEM) of this client, where the server asks for one."`
	TLSKey   string `name:"tls-key" env:"COMPACTD_TLS_KEY" type:"existingfile" placeholder:"FILE" help:"Key (PEM) of --tls-cert."`
}

// with returns o with the identity of this process.
func (a *access) with(o broker.Options) broker.Options {
	o.Creds, o.User, o.Password = a.Creds, a.User, a.Password
	o.CA, o.Cert, o.Key = a.TLSCA, a.TLSCert, a.TLSKey
	return o
}
