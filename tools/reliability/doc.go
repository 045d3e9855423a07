// Command reliability writes docs/reliability.txt from what tests printed.
//
//	go run ./tools/reliability -doc docs/reliability.txt .reliability/*.txt
//
// It fills in nothing: a test that did not run is missing in the table, one that could
// not run is skipped, one whose figures are not what is demanded is missed, and then it
// ends with an error.
package main
