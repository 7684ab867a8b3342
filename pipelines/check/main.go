package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/check"
)

//go:embed doc.go
var manual string

func main() {
	os.Exit(check.Run(context.Background(), manual, os.Args[1:], os.Stdout, os.Stderr))
}
