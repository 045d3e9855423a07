package tokens

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"compactd/internal/events"
)

const (
	// signedPrefix is what a signed token begins with; the number is that of its format.
	signedPrefix = "compactd_s1_"
	// purpose keeps a signature of one format from being one of another.
	purpose = "compactd session token 1\n"
	// minKey is how many bytes a key has at least.
	minKey = 32
	// maxSigned bounds what is decoded: a session has 64 bytes of tenant and 350 of id.
	maxSigned = 1 << 10
)

// ReadKey reads the key that signs tokens of sessions, the same for all workers of a fleet.
func ReadKey(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if data = bytes.TrimSpace(data); len(data) < minKey {
		return nil, fmt.Errorf("read key: %s has less than %d bytes, such as openssl rand -hex 32 prints", path, minKey)
	}
	return data, nil
}

// Sign returns a token of a session. It is in force until it expires, as long as the token of the hash is: an
// agent's or an operator's that may use the tenant.
func Sign(key []byte, of Hash, a events.Address, expires time.Time) string {
	body := binary.BigEndian.AppendUint64(of[:], uint64(expires.Unix()))
	body = append(body, a.Tenant+"/"+a.Session...)
	return signedPrefix + base64.RawURLEncoding.EncodeToString(append(body, mac(key, body)...))
}

func mac(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	h.Write(body)
	return h.Sum(nil)
}

// errNotSigned: a text is no token that the key has signed.
var errNotSigned = errors.New("no token of this key")

// Open returns the token that was signed, and the hash of the one that it depends on. The caller checks that
// both are in force.
func Open(key []byte, text string) (t Token, of Hash, err error) {
	encoded, ok := strings.CutPrefix(text, signedPrefix)
	if !ok || len(key) < minKey || len(text) > maxSigned {
		return t, of, errNotSigned
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	end := len(data) - sha256.Size
	if err != nil || end < len(of)+8 || !hmac.Equal(mac(key, data[:end]), data[end:]) {
		return t, of, errNotSigned
	}
	copy(of[:], data)
	t = Token{Hash: HashOf(text), Role: RoleSession, Expires: time.Unix(int64(binary.BigEndian.Uint64(data[len(of):])), 0)}
	t.Tenant, t.Session, _ = strings.Cut(string(data[len(of)+8:end]), "/")
	return t, of, t.validate()
}
