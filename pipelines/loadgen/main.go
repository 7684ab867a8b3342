package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/loadgen"
)

//go:embed doc.go
var manual string

func main() {
	os.Exit(loadgen.Run(context.Background(), manual, os.Args[1:], os.Stdout, os.Stderr))
}
