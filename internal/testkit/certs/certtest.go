package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Authority signs certificates. It is for one goroutine.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority writes the certificate of a new authority, DIR/NAME.pem.
func NewAuthority(dir, name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := template(1, name)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	a := &Authority{dir, c, key}
	return a, a.sign(name, c, key)
}

// Issue writes a certificate of 127.0.0.1 and localhost, for servers and clients, and
// its key: NAME.pem and NAME-key.pem in the directory of the authority.
func (a *Authority) Issue(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := template(2, name)
	c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if err := a.sign(name, c, key); err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return write(filepath.Join(a.dir, name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Secrets writes what the configuration of deploy/cluster includes for each user,
// DIR/USER.conf, with the hash of its [Password].
func Secrets(dir string, users ...string) error {
	for _, user := range users {
		hash, err := bcrypt.GenerateFromPassword([]byte(Password(user)), bcrypt.MinCost)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, user+".conf"), fmt.Appendf(nil, "password: %q\n", hash)); err != nil {
			return err
		}
	}
	return nil
}

// Password returns the password of a user in tests.
func Password(user string) string { return "of-the-" + user }

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func (a *Authority) sign(name string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return write(filepath.Join(a.dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
