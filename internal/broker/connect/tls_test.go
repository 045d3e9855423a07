package connect

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/testkit/certs"
)

// A server that closes the connection after the handshake may be starting, or want a certificate: both are named.
func TestConnectClosedAfterHandshake(t *testing.T) {
	dir := t.TempDir()
	ca, err := certs.NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Issue("server"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.15.0\",\"proto\":1,\"tls_required\":true,\"max_payload\":1048576}\r\n")
		encrypted := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
		_ = encrypted.HandshakeContext(t.Context())
		_, _ = encrypted.Read(make([]byte, 1)) // the client's part is whole
		_ = encrypted.Close()
	}()
	_, err = Open(t.Context(), Options{URL: "tls://" + ln.Addr().String(), CA: filepath.Join(dir, "ca.pem")})
	if foundCause(err) != CauseClosed || !strings.HasSuffix(err.Error(), "the server is starting, or it refuses this client's certificate, or requires one") {
		t.Errorf("error is %v", err)
	}
}
