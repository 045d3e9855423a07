// Package mediatest makes messages with media, for tests.
package mediatest
