package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/relay"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/replay"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	inTopic  = "projects/p/topics/orders"
	inSub    = "projects/p/subscriptions/orders"
	outTopic = "projects/p/topics/moved"
	outSub   = "projects/p/subscriptions/moved"
)

func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(inTopic)
	srv.MustCreateTopic(outTopic)
	srv.MustCreateSubscription(inSub, inTopic)
	srv.MustCreateSubscription(outSub, outTopic)
	return srv
}

// An outcome is what a run of the program has left.
type outcome struct {
	code           int
	stdout, stderr string
}

func runCheck(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	for _, name := range []string{"runner", "dry_run"} { // Beam's are global.
		before := flag.Lookup(name).Value.String()
		t.Cleanup(func() {
			if err := flag.Set(name, before); err != nil {
				t.Error(err)
			}
		})
	}
	var stdout, stderr bytes.Buffer
	code := Run(ctx, "", args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// mustEnd fails the test where the program has not ended with code.
func (o outcome) mustEnd(t *testing.T, code int) {
	t.Helper()
	if o.code != code || (o.stderr != "") != (code == program.ExitUsage) {
		t.Fatalf("exit code %d, want %d\n%s%s", o.code, code, o.stdout, o.stderr)
	}
}

func relayArgs(srv *pubsubtest.Server, more ...string) []string {
	return append([]string{"relay", "--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + inSub, "--output_topic=" + outTopic}, more...)
}

func TestCheck_AllWell(t *testing.T) {
	srv := newServer(t)
	o := runCheck(t.Context(), t, relayArgs(srv)...)
	o.mustEnd(t, program.ExitDone)
	want := `subscription projects/p/subscriptions/orders
  for      read (--input_subscriptions)
  state    exists
  topic    projects/p/topics/orders
  granted  pubsub.subscriptions.consume, for reading
  granted  pubsub.subscriptions.get, for looking at it before it is read

topic projects/p/topics/moved
  for      published to (--output_topic)
  state    exists
  granted  pubsub.topics.publish, for publishing

topic projects/p/topics/orders
  for      the topic of projects/p/subscriptions/orders (--input_subscriptions)
  state    exists

Permissions are those of the account that check runs as.
relay can run as it is told
`
	if o.stdout != want {
		t.Errorf("printed:\n%swant:\n%s", o.stdout, want)
	}
	if s := srv.Stats(inSub); s.Delivered != 0 || srv.Published(outTopic) != 0 || len(srv.Topics())+len(srv.Subscriptions()) != 4 {
		t.Errorf("it has done something: %+v", s)
	}
}

// Whoever is told what is wrong is told what mends it.
func TestCheck_TellsWhatMendsIt(t *testing.T) {
	srv := newServer(t)
	srv.Deny("Publish", outTopic)
	srv.Deny("GetSubscription", outSub)
	report := filepath.Join(t.TempDir(), "found.json")
	args := append([]string{"--account=worker@p.iam.gserviceaccount.com", "--report=" + report},
		relayArgs(srv, "--input_subscriptions="+outSub+",projects/p/subscriptions/none", "--ordering", "--max_messages=-1", "--dead_letter_topic="+inTopic)...)
	o := runCheck(t.Context(), t, args...)
	o.mustEnd(t, program.ExitFailed)
	want := `settings
  fault    --max_messages: -1: must be at least 0
  fault    --dead_letter_topic: projects/p/topics/orders is the topic of
           projects/p/subscriptions/orders, which is read: every dead letter would be read again;
           send them to another topic

subscription projects/p/subscriptions/orders
  for      read (--input_subscriptions)
  state    exists
  topic    projects/p/topics/orders
  granted  pubsub.subscriptions.consume, for reading
  granted  pubsub.subscriptions.get, for looking at it before it is read
  fault    has no message ordering, which --ordering needs and which cannot be added; create
           another subscription with message ordering, or read without --ordering
             $ gcloud pubsub subscriptions create orders-ordered --project=p --topic=projects/p/topics/orders --enable-message-ordering

subscription projects/p/subscriptions/moved
  for      read (--input_subscriptions)
  state    may not be looked up
  granted  pubsub.subscriptions.consume, for reading
  missing  pubsub.subscriptions.get, for looking at it before it is read; without it there is a
           warning
             $ gcloud pubsub subscriptions add-iam-policy-binding moved --project=p --member=serviceAccount:worker@p.iam.gserviceaccount.com --role=roles/pubsub.viewer
  note     may not be looked up, so nothing of it was checked; a read assumes that it exists, is
           attached to a topic, delivers by pull and not exactly once, has message ordering

subscription projects/p/subscriptions/none
  for      read (--input_subscriptions)
  state    does not exist
  granted  pubsub.subscriptions.get, for looking at it before it is read
  unknown  pubsub.subscriptions.consume, for reading
  fault    does not exist; give --create_subscriptions, or create it
             $ gcloud pubsub subscriptions create none --project=p --topic=TOPIC --enable-message-ordering

topic projects/p/topics/moved
  for      published to (--output_topic)
  state    exists
  missing  pubsub.topics.publish, for publishing
             $ gcloud pubsub topics add-iam-policy-binding moved --project=p --member=serviceAccount:worker@p.iam.gserviceaccount.com --role=roles/pubsub.publisher

topic projects/p/topics/orders
  for      sent dead letters (--dead_letter_topic)
  for      the topic of projects/p/subscriptions/orders (--input_subscriptions)
  state    exists
  granted  pubsub.topics.publish, for sending dead letters
  granted  pubsub.topics.get, for looking at it before a job depends on it
  warning  is the topic of projects/p/subscriptions/orders, which is read: its dead letters are
           read again; send them to another topic

Permissions are those of the account that check runs as.
TOPIC stands for the full name of a topic, projects/<project>/topics/<id>.
relay cannot run as it is told: 5 faults to mend
`
	if o.stdout != want {
		t.Errorf("printed:\n%swant:\n%s", o.stdout, want)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r check.Report
	if err := json.Unmarshal(text, &r); err != nil || len(r.Resources) != 5 || len(r.Settings) != 2 || r.Resources[0].Uses[0].Field != "--input_subscriptions" || r.Err() == nil {
		t.Errorf("report %s, %v", text, err)
	}
}

func TestCheck_TellsWhoMemberIs(t *testing.T) {
	srv := newServer(t)
	srv.Deny("Publish", outTopic)
	o := runCheck(t.Context(), t, relayArgs(srv)...)
	o.mustEnd(t, program.ExitFailed)
	for _, want := range []string{
		"$ gcloud pubsub topics add-iam-policy-binding moved --project=p --member=MEMBER --role=roles/pubsub.publisher\n",
		"\nMEMBER stands for the account that the workers run as; --account=ADDRESS puts it in.\n",
		"\nrelay cannot run as it is told: 1 fault to mend\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in:\n%s", want, o.stdout)
		}
	}
}

// Warnings are to be mended, too; notes are not.
func TestCheck_AWarningIsTold(t *testing.T) {
	srv := newServer(t)
	o := runCheck(t.Context(), t, "windowcount", "--by_ordering_key", "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub, "--output_topic="+inTopic)
	o.mustEnd(t, program.ExitFailed)
	if !strings.HasSuffix(o.stdout, "\nwindowcount can run as it is told; see the warnings\n") {
		t.Errorf("printed:\n%s", o.stdout)
	}
}

// What a program refuses of its own, it refuses when it runs: check called it runnable.
func TestCheck_SaysWhatTheProgramRefuses(t *testing.T) {
	srv := newServer(t)
	const unread = "projects/p/topics/unread"
	srv.MustCreateTopic(unread)
	report := filepath.Join(t.TempDir(), "found.json")
	for _, c := range []struct {
		args []string
		want string
	}{
		{relayArgs(srv, "--output_topic="+inTopic),
			"--output_topic: " + inTopic + " is the topic of " + inSub + ", which is read: every message would come round again; publish to another topic"},
		{relayArgs(srv, "--dead_letter_topic="+inTopic),
			"--dead_letter_topic: " + inTopic + " is the topic of " + inSub + ", which is read: every dead letter would be read again; send them to another topic"},
		{[]string{"replay", "--emulator_endpoint=" + srv.Endpoint(), "--dead_letter_subscription=" + inSub, "--dead_letter_topic=" + unread},
			"--dead_letter_topic: " + unread + " has no subscription, so that what fails again would be lost; create one, or leave the flag out"},
	} {
		o := runCheck(t.Context(), t, append([]string{"--report=" + report}, c.args...)...)
		o.mustEnd(t, program.ExitFailed)
		squeezed := strings.Join(strings.Fields(o.stdout), " ")
		if !strings.Contains(squeezed, " fault "+c.want+" ") || !strings.HasSuffix(o.stdout, "\n"+c.args[0]+" cannot run as it is told: 1 fault to mend\n") {
			t.Errorf("printed:\n%swant %s", o.stdout, c.want)
		}
		text, err := os.ReadFile(report)
		if err != nil || !strings.Contains(string(text), `"text": "`+c.want+`"`) {
			t.Errorf("report %s, %v", text, err)
		}
		ran := programtest.Execute[struct{}](t.Context(), t, map[string]programtest.Run{"relay": relay.Run, "replay": replay.Run}[c.args[0]], c.args[1:]...)
		if ran.MustEnd(t, program.ExitFailed); !strings.Contains(ran.Stderr, c.want) {
			t.Errorf("said:\n%swant %s", ran.Stderr, c.want)
		}
	}
}

// Every program that there is, with flags that are good and with such that are not.
func TestCheck_ReadsTheFlagsOfEachProgram(t *testing.T) {
	srv := newServer(t)
	flags := map[string]struct{ good, bad []string }{
		"relay":       {[]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic}, []string{"--failure_policy=never"}},
		"replay":      {[]string{"--dead_letter_subscription=" + inSub, "--dead_letter_topic=" + inTopic}, []string{"--max_hops=0"}},
		"loadgen":     {[]string{"--topic=" + outTopic}, []string{"--keys=0"}},
		"verify":      {[]string{"--subscription=" + inSub}, []string{"--linger=-1s"}},
		"windowcount": {[]string{"--input_subscriptions=" + inSub, "--by_ordering_key", "--output_topic=" + outTopic}, []string{"--late=never"}},
	}
	mains, err := filepath.Glob("../../*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range mains {
		if name := filepath.Base(filepath.Dir(path)); name != "check" && flags[name].good == nil {
			t.Errorf("nothing checks %s", name)
		}
	}
	for name, f := range flags {
		args := slices.Concat([]string{name, "--emulator_endpoint=" + srv.Endpoint()}, f.good)
		o := runCheck(t.Context(), t, args...)
		o.mustEnd(t, program.ExitDone)
		if !strings.HasSuffix(o.stdout, "\n"+name+" can run as it is told\n") {
			t.Errorf("printed:\n%s", o.stdout)
		}
		o = runCheck(t.Context(), t, slices.Concat(args, f.bad)...)
		o.mustEnd(t, program.ExitFailed)
		at, _, _ := strings.Cut(f.bad[0], "=")
		if !strings.Contains(o.stdout, "settings\n  fault    "+at+": ") || !strings.HasSuffix(o.stdout, "\n"+name+" cannot run as it is told: 1 fault to mend\n") {
			t.Errorf("printed:\n%s", o.stdout)
		}
	}
}

// What a program finds out when it starts, check finds out, too: replay takes the topic
// of its subscription for what fails again.
func TestCheck_WhatReplayLooksUp(t *testing.T) {
	srv := newServer(t)
	srv.Deny("Publish", inTopic)
	args := []string{"replay", "--emulator_endpoint=" + srv.Endpoint(), "--dead_letter_subscription=" + inSub}
	o := runCheck(t.Context(), t, args...)
	o.mustEnd(t, program.ExitFailed)
	for _, want := range []string{
		"settings\n  note     the topics are not known before the pipeline runs, for each letter says where it was to\n           go; the account needs pubsub.topics.publish on each of them, as roles/pubsub.publisher\n           has it\n",
		"topic projects/p/topics/orders\n  for      sent dead letters (--dead_letter_topic)\n",
		"  missing  pubsub.topics.publish, for sending dead letters\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in:\n%s", want, o.stdout)
		}
	}
	// Where it cannot be found out, the rest is told.
	if err := srv.DeleteSubscription(inSub); err != nil {
		t.Fatal(err)
	}
	o = runCheck(t.Context(), t, args...)
	o.mustEnd(t, program.ExitFailed)
	if !strings.HasSuffix(o.stdout, "\nreplay cannot run as it is told: 1 fault to mend\n") {
		t.Errorf("printed:\n%s", o.stdout)
	}
}

func TestCheck_TopicsThatMessagesSay(t *testing.T) {
	srv := newServer(t)
	o := runCheck(t.Context(), t, relayArgs(srv, "--output_topic_attribute=to")...)
	o.mustEnd(t, program.ExitDone)
	for _, want := range []string{
		"settings\n  note     --output_topic_attribute: the topics are not known before the pipeline runs, for each\n           message says its own; ",
		"topic projects/p/topics/moved\n  for      published to (--output_topic)\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in:\n%s", want, o.stdout)
		}
	}
}

// A command line with --report is checked as it is, and says why no file is there then.
func TestCheck_AReportBehindTheProgramIsThePrograms(t *testing.T) {
	srv := newServer(t)
	report := filepath.Join(t.TempDir(), "r.json")
	o := runCheck(t.Context(), t, relayArgs(srv, "--report="+report)...)
	o.mustEnd(t, program.ExitDone)
	if want := "settings\n  note     --report behind relay is relay's, and not written now; check's own stands before relay\n"; !strings.HasPrefix(o.stdout, want) {
		t.Errorf("printed:\n%swant:\n%s", o.stdout, want)
	}
	if _, err := os.Stat(report); err == nil {
		t.Error("it is written")
	}
}

func TestCheck_NothingToCheck(t *testing.T) {
	o := runCheck(t.Context(), t, "relay", "--embedded")
	o.mustEnd(t, program.ExitDone)
	if want := "relay uses no Pub/Sub: there is nothing to check\n"; o.stdout != want {
		t.Errorf("printed:\n%s", o.stdout)
	}
}

func TestCheck_GivesUpOnAServerThatIsAbsent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listener.Addr().String()
	_ = listener.Close() // Nobody listens there now.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for _, args := range [][]string{{"loadgen", "--topic=" + outTopic}, {"replay", "--dead_letter_subscription=" + inSub}} {
		o := runCheck(ctx, t, append(args, "--emulator_endpoint="+endpoint)...)
		if o.code != program.ExitFailed || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || strings.Count(o.stderr, endpoint) > 2 ||
			!strings.HasPrefix(o.stderr, "check failed: Pub/Sub at "+endpoint+" has not answered within 5s: ") ||
			!strings.HasSuffix(o.stderr, "; check that it runs and can be reached, and --emulator_endpoint and --pubsub_endpoint\n") {
			t.Errorf("%s: exit code %d, %s%s", args[0], o.code, o.stdout, o.stderr)
		}
	}
}

func TestFlags_EachFault(t *testing.T) {
	t.Cleanup(func() { *runners.Runner = "" })
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	if err := os.WriteFile(file, []byte(`{"dlq": {"Topic": "`+outTopic+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	key, keyed := filepath.Join(dir, "key.json"), filepath.Join(dir, "keyed.json")
	if err := errors.Join(os.WriteFile(key, nil, 0o600), os.WriteFile(keyed, []byte(`{"sink": {"Topic": "`+outTopic+`", "OnFailure": {"SendTo": {"Topic": "`+inTopic+`", "ServiceAccountKeyFile": "`+key+`"}}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string // whole
	}{
		"a report over the file":        {[]string{"--config=" + file, "--report=" + file}, `--report: "` + file + `": must be another file than that of --config`},
		"a report over the key":         {[]string{"--config=" + file, "--report=" + key, "--service_account_key_file=" + key}, "--report: (set): must be another file than that of --service_account_key_file"},
		"a report over a program's key": {[]string{"--report=" + key, "loadgen", "--service_account_key_file=" + key}, "--report: (set): must be another file than that of --service_account_key_file"},
		"a report over a file's key":    {[]string{"--config=" + keyed, "--report=" + key}, "--report: (set): must be another file than that of a ServiceAccountKeyFile in --config"},
		"an own flag behind a program":  {[]string{"relay", "--max_messages=3", "--account=x@y"}, "--account: (set): must be before relay, among check's own flags"},
		"own flags behind a program":    {[]string{"loadgen", "-account", "x@y", "--config", file, "--keys=3"}, "--account: (set): must be before loadgen, among check's own flags\n--config: (set): must be before loadgen, among check's own flags"},
		"nothing":                       {nil, "give the name of a program and its flags, or --config"},
		"no program":                    {[]string{"mover"}, `"mover": must be relay, replay, loadgen, verify or windowcount, behind check's own flags`},
		"unknown":                       {[]string{"--configs=x"}, "flag provided but not defined: -configs"},
		"a program's, before its name":  {[]string{"--topic=x", "loadgen"}, "flag provided but not defined: -topic"},
		"unknown to the program":        {[]string{"loadgen", "--topics=x"}, "flag provided but not defined: -topics"},
		"no number":                     {[]string{"loadgen", "--keys=many"}, `invalid value "many" for flag -keys: parse error`},
		"a word behind the program":     {[]string{"loadgen", "relay"}, `unexpected argument: "relay"`},
		"a connection before a program": {[]string{"--emulator_endpoint=h:1", "loadgen"}, "--emulator_endpoint: (set): must be among the flags of loadgen, behind its name, or beside --config"},
		"two connections":               {[]string{"--config=" + file, "--emulator_endpoint=h:1", "--pubsub_endpoint=h:2"}, `--pubsub_endpoint: "h:2": must be empty beside --emulator_endpoint`},
		"no host":                       {[]string{"--config=" + file, "--emulator_endpoint=here"}, `--emulator_endpoint: "here": must be host:port`},
		"a key beside an emulator":      {[]string{"--config=" + file, "--emulator_endpoint=h:1", "--service_account_key_file=k"}, "--service_account_key_file: (set): must be empty beside --emulator_endpoint, which takes no credentials"},
		"a file and a program":          {[]string{"--config=" + file, "relay"}, `--config: "` + file + `": must not be given beside the name of a program, "relay"`},
		"no file":                       {[]string{"--config=" + dir + "/none"}, "--config: open " + dir + "/none: no such file or directory"},
		"account":                       {[]string{"--account=jo", "--config=" + file}, `--account: "jo": must be an e-mail address, or as gcloud writes a member: user:ADDRESS, group:ADDRESS or serviceAccount:ADDRESS`},
		"report":                        {[]string{"--report=/no/such/r.json", "--config=" + file}, `--report: "/no/such/r.json": must be in a directory that exists`},
		"a file that says nothing":      {[]string{"--config=" + os.DevNull}, "--config " + os.DevNull + ":\nline 1, column 0: no JSON object: it ends too early"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runCheck(t.Context(), t, tc.args...)
			if want := tc.want + "\ncheck --help lists the flags.\n"; o.code != program.ExitUsage || o.stderr != want || o.stdout != "" {
				t.Errorf("exit code %d:\n%swant:\n%s", o.code, o.stderr, want)
			}
		})
	}
}

func TestFlags_TheMemberOfAnAccount(t *testing.T) {
	for account, want := range map[string]string{
		"": "", "jo@example.com": "user:jo@example.com", "group:all@example.com": "group:all@example.com",
		"w@p.iam.gserviceaccount.com": "serviceAccount:w@p.iam.gserviceaccount.com", "1-compute@developer.gserviceaccount.com": "serviceAccount:1-compute@developer.gserviceaccount.com",
	} {
		if got := (settings{account: account}).member(); got != want || !isAccount(account) {
			t.Errorf("%s: %s, want %s", account, got, want)
		}
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	manual, err := os.ReadFile("../../check/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--help"}, {"relay", "--help"}} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), string(manual), args, &stdout, &stderr); code != program.ExitDone || stderr.Len() > 0 {
			t.Fatalf("exit code %d, %s", code, stderr.String())
		}
		for _, want := range []string{"Check asks Pub/Sub", "\nTHE FILE\n", "\nEXIT CODES\n", "\nWHAT TO PRINT\n", "--account account"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("help does not tell of %q:\n%s", want, stdout.String())
			}
		}
		for _, unwanted := range []string{"OTHER FLAGS", "Beam's flags"} {
			if strings.Contains(stdout.String(), unwanted) {
				t.Errorf("help tells of %q", unwanted)
			}
		}
	}
	for _, p := range programs {
		if !strings.Contains(string(manual), p.name) {
			t.Errorf("the manual does not tell of %s", p.name)
		}
	}
}
