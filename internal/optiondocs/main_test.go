package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestPage_IsWhatTheCodeSays(t *testing.T) {
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the comments say: run go generate ./internal/optiondocs", page)
	}
}

// A table of options is read for its defaults: each option has a text, and its struct
// a heading.
func TestPage_HasEveryOption(t *testing.T) {
	text, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### source.Config", "### sink.Config", "### options.Publisher", "### options.Subscriber",
		"### options.SubscriptionCreate", "### options.TopicCreate", "### options.Limit",
		"#### `MaxOutstandingMessages`", "#### `BatchDelay`", "#### `StartPosition`",
		"#### `ServiceAccountKeyFile`, `EmulatorEndpoint`, `Endpoint`",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no %q", want)
		}
	}
	for _, c := range []string{"pubsubio/source", "pubsubio/sink", "pubsubio/options"} {
		structs, err := configs(filepath.Join(root, c))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range structs {
			for _, f := range s.fields {
				if len(f.doc) < 20 {
					t.Errorf("%s.%v says nothing: %q", s.name(), f.names, f.doc)
				}
			}
		}
	}
}
