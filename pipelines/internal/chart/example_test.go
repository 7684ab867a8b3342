package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/chart"
)

func ExampleOverTime() {
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "counts.svg")
	at := time.Date(2026, time.January, 2, 3, 4, 0, 0, time.UTC)
	err = chart.OverTime(path, "Orders", "orders a minute", []chart.Line{
		{Name: "eu", Times: []time.Time{at, at.Add(time.Minute)}, Counts: []int64{12, 17}},
	})
	svg, readErr := os.ReadFile(path)
	fmt.Println(err, readErr, strings.Contains(string(svg), "orders a minute"))
	// Output:
	// <nil> <nil> true
}
