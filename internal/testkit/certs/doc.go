// Package certs makes the certificates and passwords that tests of TLS and users
// need: real ones, for an hour, and for this machine alone.
//
//	ca, err := certs.NewAuthority(dir, "ca") // dir/ca.pem
//	err = ca.Issue("server")                    // dir/server.pem, dir/server-key.pem
package certs
