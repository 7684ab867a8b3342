package pubsubio_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of Beam's that use its pubsubio, by their files.
var beamExamples = []string{
	"go/examples/streaming_wordcap/wordcap.go",
	"go/examples/slowly_updating_side_input/slowly_updating_side_input.go",
	"go/examples/kafka/taxi.go",
}

// clientV1 stands for version 1 of Google's client, with which two of the examples make
// their topic. This module does without that: it is unsupported from 2026-12-31.
const clientV1 = `package pubsub

import "context"

type (
	Client             struct{}
	Topic              struct{}
	Subscription       struct{}
	SubscriptionConfig struct{ Topic *Topic }
	Message            struct{ Data []byte }
	PublishResult      struct{}
)

func NewClient(context.Context, string, ...any) (*Client, error)           { return nil, nil }
func (*Client) Close() error                                               { return nil }
func (*Client) Topic(string) *Topic                                        { return nil }
func (*Client) CreateTopic(context.Context, string) (*Topic, error)        { return nil, nil }
func (*Client) Subscription(string) *Subscription                          { return nil }
func (*Client) CreateSubscription(context.Context, string, SubscriptionConfig) (*Subscription, error) {
	return nil, nil
}
func (*Topic) Exists(context.Context) (bool, error)             { return false, nil }
func (*Topic) Delete(context.Context) error                     { return nil }
func (*Topic) Publish(context.Context, *Message) *PublishResult { return nil }
func (*Subscription) Exists(context.Context) (bool, error)      { return false, nil }
func (*Subscription) ID() string                                { return "" }
func (*PublishResult) Get(context.Context) (string, error)      { return "", nil }
`

// A program written for Beam's pubsubio compiles with nothing but its import changed.
// The examples are read where the module of Beam is and seen as packages of this one,
// through an overlay, and their go.mod is this one's and clientV1; nothing is written into
// the tree, and to export a package is to compile it and to link nothing.
func TestBeamsExamples_CompileWithTheImportChanged(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	beamDir := strings.TrimSpace(goCommand(t, root, "list", "-m", "-f", "{{.Dir}}", "github.com/apache/beam/sdks/v2"))
	overlay := make(map[string]string)
	var packages []string
	for _, file := range beamExamples {
		name := strings.TrimSuffix(filepath.Base(file), ".go")
		changed := filepath.Join(dir, name+".go")
		write(t, changed, withOurImport(t, filepath.Join(beamDir, filepath.FromSlash(file))))
		overlay[filepath.Join(root, "beam_examples", name, "main.go")] = changed
		packages = append(packages, "./beam_examples/"+name)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(replaced))
	modfile := withClientV1(t, root, dir)
	goCommand(t, root, append([]string{"list", "-export", "-modfile=" + modfile, "-overlay=" + filepath.Join(dir, "overlay.json")}, packages...)...)
}

// withOurImport returns a program of Beam's as its author would change it.
func withOurImport(t *testing.T, file string) string {
	t.Helper()
	const theirs, ours = `"github.com/apache/beam/sdks/v2/go/pkg/beam/io/pubsubio"`, `"github.com/beam-pubsub/beam-pubsub-go/pubsubio"`
	program := read(t, file)
	if n := strings.Count(program, theirs); n != 1 {
		t.Fatalf("%s imports Beam's pubsubio %d times", file, n)
	}
	return strings.Replace(program, theirs, ours, 1)
}

// withClientV1 writes a go.mod that is this module's, and clientV1, and returns its path.
func withClientV1(t *testing.T, root, dir string) string {
	t.Helper()
	client := filepath.Join(dir, "client")
	write(t, filepath.Join(client, "client.go"), clientV1)
	write(t, filepath.Join(client, "go.mod"), "module cloud.google.com/go/pubsub\n\ngo 1.26.0\n")
	modfile := filepath.Join(dir, "go.mod")
	write(t, modfile, read(t, filepath.Join(root, "go.mod"))+"\nrequire cloud.google.com/go/pubsub v1.51.1\n\nreplace cloud.google.com/go/pubsub => "+client+"\n")
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	return modfile
}

func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
