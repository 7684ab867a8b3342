package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/verify"
)

//go:embed doc.go
var manual string

func main() {
	os.Exit(verify.Run(context.Background(), manual, os.Args[1:], os.Stdout, os.Stderr))
}
