package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	ctx := context.Background()
	p := printer{os.Stdout}
	cs, err := readCorpora(os.Getenv("COMPACTD_SESSIONS"), "examples/sessions", p)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ws, stop, err := writers()
	if err == nil {
		err = evalRetention(ctx, cs, ws, p)
	}
	if err == nil {
		err = stop()
	}
	if err == nil {
		err = evalGrowth(ctx, cs[0], p)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
