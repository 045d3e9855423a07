// Package dialecttest has the fixtures of dialects, for the tests of packages events and dialect.
package dialecttest
