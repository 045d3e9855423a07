// Package clitest is what the tests of all commands show of a command line.
package clitest
