// Package overflowtest reads errors as the reference does, for tests that compare with it.
package overflowtest
