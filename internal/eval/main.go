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
	if len(os.Args) > 1 {
	d, _ := os.MkdirTemp("", "ev"); fmt.Println(evalOutage(ctx, load{5, 20, 750, 500}, d, p), cs[0].name)
	return
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
