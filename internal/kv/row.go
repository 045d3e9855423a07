package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"compactd/internal/events"
)

// A key is tenant.session, a zero byte, and the name of the row. The zero byte
// sorts below every byte of an id, so the rows of a session are
// adjacent and sessions are in the order of their addresses.
const (
	maxNameBytes = 16
	maxKeyBytes  = events.MaxTenantLen + 1 + events.MaxIDLen + 1 + maxNameBytes
	sumBytes     = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendValue appends data and its checksum to b. The checksum covers the key, so a row under
// another key fails the check.
func appendValue(b, key, data []byte) []byte {
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, checksum(key, data))
}

// verifyValue returns the data of a value, which shares its memory.
func verifyValue(key, value []byte) ([]byte, error) {
	n := len(value) - sumBytes
	if n < 0 {
		return nil, fmt.Errorf("row %q has %d bytes", key, len(value))
	}
	if checksum(key, value[:n]) != binary.LittleEndian.Uint32(value[n:]) {
		return nil, fmt.Errorf("row %q has a wrong checksum", key)
	}
	return value[:n], nil
}

func checksum(key, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, data)
}

// prefixOf returns the prefix of all keys of a session.
func prefixOf(a events.Address) string { return a.String() + "\x00" }

// addressOf returns the address in a key. A key that no checkpoint writes is an error.
func addressOf(key []byte) (events.Address, error) {
	address, name, ok := bytes.Cut(key, []byte{0})
	tenant, session, ok2 := bytes.Cut(address, []byte{'.'})
	a := events.Address{Tenant: string(tenant), Session: string(session)}
	if !ok || !ok2 || a.Validate() != nil || !validName(string(name)) {
		return events.Address{}, fmt.Errorf("%q is not a key of a row", key)
	}
	return a, nil
}

func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= maxNameBytes
}
