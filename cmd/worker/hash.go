package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

type hashCmd struct {
	Cost int `default:"11" help:"Rounds of bcrypt, as a power of two, 4 to 15; the server pays for them with every connection (${default})."`
}

// mostCost is the largest cost whose check takes less than the two seconds that a client waits
// for its connection.
const mostCost = 15

// Validate is called by kong.
func (c *hashCmd) Validate() error {
	if c.Cost < bcrypt.MinCost || c.Cost > mostCost {
		return fmt.Errorf("--cost %d is not between %d and %d", c.Cost, bcrypt.MinCost, mostCost)
	}
	return nil
}

// errNoPassword: an empty password would let anyone in.
var errNoPassword = errors.New("the password is empty; write it to standard input, on one line")

// Run hashes the first line of standard input: a command line is there for every user to read.
func (c *hashCmd) Run() error {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return errNoPassword
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), c.Cost)
	if err != nil {
		return fmt.Errorf("hash the password: %w", err)
	}
	_, err = fmt.Println(string(hash))
	return err
}
