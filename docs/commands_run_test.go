package docs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// waitLimit is reached by a failing test only.
const waitLimit = 2 * time.Minute

// A page's commands are executed in their order, in a directory of its own, by a shell as
// a reader's: with the programs on its path. Where the page has a server started
// (pubsubtestd), the others reach that one, by the address that stands in them; else one
// of the test has the topics and subscriptions that they name.
func TestCommands_WorkAsTheyStand(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and executes every program")
	}
	if err := builtPrograms(); err != nil {
		t.Fatal(err)
	}
	programs := programDirs(t)
	n := 0
	for _, p := range sortedPages(t) {
		cs, _ := commandsOf(p.path, p.text, func(s string) bool { return programs[s] != "" })
		cs = slices.DeleteFunc(cs, func(c command) bool { return !isExecuted(c, programs) })
		if len(cs) == 0 {
			continue
		}
		n += len(cs)
		t.Run(filepath.ToSlash(p.path), func(t *testing.T) {
			t.Parallel()
			newWalk(t, cs).run(t, cs)
		})
	}
	if n < 15 {
		t.Errorf("%d commands", n)
	}
}

// A walk is a reader on a page.
type walk struct {
	dir string
	// srv is the server that the page takes for granted; nil where the page has one
	// started, whose address is then endpoint.
	srv      *pubsubtest.Server
	endpoint string
}

var (
	resource    = regexp.MustCompile(`projects/[\w-]+/(topics|subscriptions)/[\w-]+`)
	address     = regexp.MustCompile(`(localhost|127\.0\.0\.1):\d+`)
	outputFile  = regexp.MustCompile(`--(?:report|plot)=(\S+)`)
	daemon      = "pubsubtestd"
	flagName    = regexp.MustCompile(`(?:^| )--([a-z][\w-]*)`)
	alone       = regexp.MustCompile(`(?:^| )--(embedded|help)\b`) // needs no server
	endingFlags = regexp.MustCompile(`(?:^| )--(messages|max_messages|stop_when_idle|embedded|dry_run|help)\b`)
)

func newWalk(t *testing.T, cs []command) *walk {
	t.Helper()
	w := &walk{dir: t.TempDir()}
	if slices.ContainsFunc(cs, func(c command) bool { return c.program() == daemon }) {
		return w
	}
	w.srv = pubsubtest.New(t)
	w.endpoint = w.srv.Endpoint()
	names := make(map[string]string) // by resource, the topic that it is or has
	for _, c := range cs {
		for _, name := range resource.FindAllString(c.text, -1) {
			names[name] = strings.Replace(name, "/subscriptions/", "/topics/", 1)
			names[names[name]] = names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] == name {
			w.srv.MustCreateTopic(name)
			// Somebody reads it, whom the page does not name: of dead letters, check asks that.
			w.srv.MustCreateSubscription(strings.Replace(name, "/topics/", "/subscriptions/", 1)+"-reader", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] != name {
			w.srv.MustCreateSubscription(name, names[name], pubsubtest.Ordered())
		}
	}
	return w
}

func (w *walk) run(t *testing.T, cs []command) {
	t.Helper()
	for _, c := range cs {
		var err error
		switch {
		case c.marked():
			err = checkFlags(t.Context(), c)
		case c.program() == daemon:
			err = w.startServer(t, c)
		default:
			err = w.execute(t, c)
		}
		if err != nil {
			t.Fatalf("%v\n%v", c, err)
		}
	}
}

// shell is a command in the walk's directory. It is the program itself, so that a signal
// reaches it, where it is one alone.
func (w *walk) shell(ctx context.Context, text string) *exec.Cmd {
	if !strings.ContainsAny(text, "|&;") {
		text = "exec " + text
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+binDir+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

var (
	quotes = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	joints = regexp.MustCompile(`[|&;]+`)
)

// checkFlags asks the programs of a command that is not executed for its flags.
func checkFlags(ctx context.Context, c command) error {
	for _, part := range joints.Split(quotes.ReplaceAllString(c.text, ""), -1) {
		of := command{text: strings.TrimSpace(part)}
		if of.text == "" {
			continue
		}
		help, _ := exec.CommandContext(ctx, filepath.Join(binDir, of.program()), "--help").CombinedOutput()
		for _, m := range flagName.FindAllStringSubmatch(of.text, -1) {
			if !regexp.MustCompile(`(?m)(^|\s)--?` + m[1] + `\b`).Match(help) {
				return fmt.Errorf("%s has no flag --%s", of.program(), m[1])
			}
		}
	}
	return nil
}

// startServer starts the server that a page tells of, until the test's end, at an address
// that is free.
func (w *walk) startServer(t *testing.T, c command) error {
	t.Helper()
	if !address.MatchString(c.text) {
		return errors.New("a reader does not know where it listens: give --addr")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*waitLimit) // A test's ends before its clean-up.
	cmd := w.shell(ctx, address.ReplaceAllString(c.text, "127.0.0.1:0"))
	var said bytes.Buffer
	cmd.Stderr = &said
	t.Cleanup(cancel)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", c, err, said.String())
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			w.endpoint = at
			return nil
		}
	}
	return fmt.Errorf("it did not listen: %s", said.String())
}

// execute runs a command to its end. One that has none is interrupted as soon as the
// server has seen it work.
func (w *walk) execute(t *testing.T, c command) error {
	t.Helper()
	text, err := w.addressed(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	cmd := w.shell(ctx, text)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	atWork, err := w.feed(c)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	want, worked := 0, make(chan error, 1)
	if atWork != nil {
		want = 130
		go func() { // Ends with ctx.
			err := atWork(ctx)
			if err == nil {
				err = cmd.Process.Signal(os.Interrupt)
			}
			worked <- err
		}()
	}
	_ = cmd.Wait()
	cancel()
	code := cmd.ProcessState.ExitCode()
	switch {
	case strings.HasSuffix(c.text, " --help") && code == 2: // as package flag has it
	case code != want:
		return fmt.Errorf("it ended with %d, want %d:\n%s", code, want, said.String())
	case atWork != nil:
		if err := <-worked; err != nil {
			return err
		}
	}
	for _, m := range outputFile.FindAllStringSubmatch(c.text, -1) {
		if _, err := os.Stat(filepath.Join(w.dir, m[1])); err != nil {
			return err
		}
	}
	return nil
}

// addressed is c with the address of the walk's server.
func (w *walk) addressed(c command) (string, error) {
	const flag = "--emulator_endpoint="
	switch {
	case strings.Contains(c.text, flag):
		return address.ReplaceAllString(c.text, w.endpoint), nil
	case alone.MatchString(c.text), c.program() == "cat":
		return c.text, nil
	case w.srv == nil:
		return "", errors.New("it would not reach the server that the page has started: give " + flag)
	}
	return c.text + " " + flag + w.endpoint, nil
}
