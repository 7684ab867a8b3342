package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A command of a page is executed, or the page says why it is not: that it needs Google
// Cloud, that it takes minutes, that it is shortened. This looks at what can be told
// without executing anything.
func TestCommands_AreExecutedOrMarked(t *testing.T) {
	programs := programDirs(t)
	n := 0
	for _, p := range sortedPages(t) {
		cs, faults := commandsOf(p.path, p.text, func(s string) bool { return programs[s] != "" })
		for _, f := range faults {
			t.Error(f)
		}
		for _, c := range cs {
			n++
			if err := check(c, programs); err != nil {
				t.Errorf("%v\n%v", c, err)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d commands found", n)
	}
}

// errUnmarked says what to do about a command that nothing executes.
var errUnmarked = errors.New("nobody executes it: write on the page, in its block, right above that or in its sentence, why: that it needs Google Cloud, takes minutes, or is shortened; or has the walk execute it, and say so")

// check looks at a command that is not executed here, and finds out whether it need be.
func check(c command, programs map[string]string) error {
	w := c.words()
	switch {
	case walked.MatchString(c.around):
		return nil
	case w[0] == "gcloud":
		if !needsCloud.MatchString(c.around) {
			return errors.New(`the page must say that it "needs Google Cloud"`)
		}
		return checkGcloud(c.text)
	case w[0] == "go" && w[1] == "run":
		if dir := filepath.Clean(filepath.Join("..", w[2])); dir != programs[c.program()] {
			return fmt.Errorf("%s has no program that the tests know", w[2])
		}
	}
	switch {
	case w[0] == "go" && w[1] == "test" && !slices.Contains(w, "./..."):
		return checkTests(w[2:])
	case !c.marked() && (!isExecuted(c, programs) || c.program() == "bench" && !strings.HasSuffix(c.text, " --help")):
		return errUnmarked
	}
	if strings.Contains(c.text, "…") && !shortened.MatchString(c.around) {
		return errors.New("it is not whole: give all of it, or write that it is shortened")
	}
	return nil
}

// isExecuted reports whether TestCommands_WorkAsTheyStand executes c, or asks its program
// for its flags: what runs a program of ours, and what writes a file for one.
func isExecuted(c command, programs map[string]string) bool {
	return programs[c.program()] != "" || c.program() == "cat"
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)

// checkTests looks for the tests of a go test, which "go test ./..." executes.
func checkTests(args []string) error {
	var dir, pattern string
	for i, a := range args {
		a = strings.Trim(a, "'")
		switch {
		case strings.HasPrefix(a, "./"):
			dir = a
		case i > 0 && (args[i-1] == "-run" || args[i-1] == "-bench"):
			pattern = a
		}
	}
	if dir == "" || pattern == "" {
		return errors.New("go test of a page names a package and, behind -run or -bench, its tests")
	}
	named, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f) //nolint:gosec // of this module
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			if named.MatchString(m[1]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no test of that name", dir)
}

// gcloudFlags are the commands that pages and errors tell of, with the flags that their
// reference has (https://cloud.google.com/sdk/gcloud/reference), those that can be turned
// off with [no-]. Look a new one up there before you add it.
var gcloudFlags = map[string]string{
	"auth application-default login":              "",
	"config set":                                  "",
	"iam service-accounts create":                 "display-name",
	"projects add-iam-policy-binding":             "member role condition",
	"projects describe":                           "format",
	"pubsub topics create":                        "message-retention-duration message-storage-policy-allowed-regions labels schema message-encoding topic-encryption-key",
	"pubsub topics delete":                        "",
	"pubsub topics describe":                      "",
	"pubsub topics list":                          "filter",
	"pubsub topics publish":                       "message attribute ordering-key",
	"pubsub topics update":                        "message-retention-duration clear-message-retention-duration update-labels",
	"pubsub topics add-iam-policy-binding":        "member role condition",
	"pubsub subscriptions create":                 "topic topic-project ack-deadline [no-]retain-acked-messages message-retention-duration [no-]enable-message-ordering [no-]enable-exactly-once-delivery expiration-period message-filter dead-letter-topic dead-letter-topic-project max-delivery-attempts min-retry-delay max-retry-delay labels",
	"pubsub subscriptions update":                 "ack-deadline [no-]retain-acked-messages message-retention-duration [no-]enable-exactly-once-delivery expiration-period dead-letter-topic dead-letter-topic-project max-delivery-attempts clear-dead-letter-policy min-retry-delay max-retry-delay clear-retry-policy push-endpoint update-labels clear-labels",
	"pubsub subscriptions delete":                 "",
	"pubsub subscriptions describe":               "",
	"pubsub subscriptions list":                   "filter",
	"pubsub subscriptions pull":                   "auto-ack limit",
	"pubsub subscriptions ack":                    "ack-ids",
	"pubsub subscriptions seek":                   "time snapshot snapshot-project",
	"pubsub subscriptions modify-push-config":     "push-endpoint",
	"pubsub subscriptions add-iam-policy-binding": "member role condition",
}

// ofAllGcloud are the flags that every command takes.
const ofAllGcloud = " project account impersonate-service-account format quiet verbosity"

// checkGcloud looks for the flags of a gcloud in its reference.
func checkGcloud(text string) error {
	w := strings.Fields(text)[1:]
	for n := min(len(w), 4); n > 0; n-- {
		of, ok := gcloudFlags[strings.Join(w[:n], " ")]
		if !ok {
			continue
		}
		flags := strings.Fields(of + ofAllGcloud)
		for _, word := range w[n:] {
			flag, isFlag := strings.CutPrefix(word, "--")
			flag, _, _ = strings.Cut(flag, "=")
			negated, _ := strings.CutPrefix(flag, "no-")
			if isFlag && !slices.Contains(flags, flag) && !slices.Contains(flags, "[no-]"+negated) {
				return fmt.Errorf("gcloud %s has no flag --%s, as far as the table of this test says", strings.Join(w[:n], " "), flag)
			}
		}
		return nil
	}
	return errors.New("no gcloud command that the table of this test has")
}

var gcloudInCode = regexp.MustCompile("gcloud (?:auth|config|iam|projects|pubsub) [^,;:\"`)(]+")

// An error's text is as much copied as a page's.
func TestGcloud_InTheCodeHasItsFlags(t *testing.T) {
	n := 0
	for _, root := range []string{"../pubsubio", "../pipelines", "../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // of this module
			for i, line := range strings.Split(string(text), "\n") {
				for _, found := range gcloudInCode.FindAllString(line, -1) {
					n++
					if err := checkGcloud(found); err != nil {
						t.Errorf("%s:%d: %s\n%v", path, i+1, found, err)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 5 {
		t.Errorf("%d found", n)
	}
}

func TestCommands_Faults(t *testing.T) {
	programs := map[string]string{"relay": "../pipelines/relay"}
	const cloud, long = "It needs Google Cloud.", "It takes two minutes."
	for _, tc := range []struct{ text, around, want string }{
		{"cat >orders.json <<EOF\n{}\nEOF", "", ""},
		{"gcloud pubsub topics create t", cloud, ""},
		{"gcloud pubsub topics create t", "", "needs Google Cloud"},
		{"gcloud pubsub topics create t", long, "needs Google Cloud"},
		{"gcloud pubsub topics create t --ordering", cloud, "no flag --ordering"},
		{"gcloud pubsub subscriptions update s --no-enable-exactly-once-delivery --project=p", cloud, ""},
		{"gcloud pubsub subscriptions update s --no-dead-letter-topic", cloud, "no flag --no-dead-letter-topic"},
		{"gcloud pubsub topic create t", cloud, "no gcloud command"},
		{"go run ./pipelines/relay --embedded", "", ""},
		{"go run ./pipelines/NAME", "", "no program"},
		{"relay --embedded", "", ""},
		{"relay --filter=…", "", "not whole"},
		{"relay --filter=…", "What is shortened", ""},
		{"go test ./...", "", "nobody executes it"},
		{"go test ./...", long, ""},
		{"bash .ci/run", "", "nobody executes it"},
		{"go mod tidy", "", "nobody executes it"},
		{"go mod tidy", "The walk executes this:", ""},
		{"go test ./docs -run Commands_Faults", "", ""},
		{"go test ./docs -run Commands_NoSuch", "", "no test of that name"},
		{"go test ./docs", "", "names a package and"},
	} {
		err := check(command{text: tc.text, around: tc.around}, programs)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
		}
	}
}
