package program

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// namesIn are the files in a directory.
func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func mustWrite(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func mustHold(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, want %q: %v", path, got, want, err)
	}
}

func TestWriteOutput_ReplacesAFileWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	mustWrite(t, path, "old, and longer", 0o600)
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	for range 2 {
		if err := WriteOutput(path, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	mustHold(t, path, "new")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if before, err := io.ReadAll(reader); string(before) != "old, and longer" {
		t.Errorf("who had it open reads %q, %v", before, err)
	}
	if names := namesIn(t, dir); names != "r.json" {
		t.Errorf("left %s", names)
	}
}

// What cannot be replaced is written in place: a file that is mounted by itself, whose
// directory is full of other things, read-only, or takes no longer name. An hour's run has
// ended then.
func TestWriteOutput_WritesInPlaceWhatCannotBeReplaced(t *testing.T) {
	for name, refused := range map[string]error{
		"a mount point":           syscall.EBUSY,
		"another file system":     syscall.EXDEV,
		"a read-only directory":   syscall.EROFS,
		"not the owner's to move": syscall.EPERM,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "r.json")
		mustWrite(t, path, "old, and longer", 0o600)
		rename := func(from, to string) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: refused} }
		if err := writeOutput(path, []byte("new"), rename); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustHold(t, path, "new")
		if names := namesIn(t, dir); names != "r.json" {
			t.Errorf("%s: left %s", name, names)
		}
	}
}

// Written in place, a file that the disk has no room for would be lost with what it held.
func TestWriteOutput_KeepsTheOldFileOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	mustWrite(t, path, "old", 0o600)
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		rename := func(from, to string) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: full} }
		if err := writeOutput(path, []byte("new"), rename); !errors.Is(err, full) {
			t.Errorf("%v, want %v", err, full)
		}
		mustHold(t, path, "old")
		if names := namesIn(t, dir); names != "r.json" {
			t.Errorf("left %s", names)
		}
	}
}

// A name that has room for no other beside it, as the longest one, is tried and written all
// the same, be it there or not.
func TestWriteOutput_TheLongestName(t *testing.T) {
	for _, length := range []int{248, 255} {
		dir := t.TempDir()
		name := strings.Repeat("n", length)
		path := filepath.Join(dir, name)
		for _, content := range []string{"first, and longer", "second"} {
			var f options.Faults
			OutputFaults(&f, "report", path)
			if err := errors.Join(f.Err(), WriteOutput(path, []byte(content))); err != nil {
				t.Errorf("%d: %v", length, err)
			}
			mustHold(t, path, content)
		}
		if names := namesIn(t, dir); names != name {
			t.Errorf("left %s", names)
		}
	}
}

func TestWriteOutput_InADirectoryThatTakesNoFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to any directory")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	mustWrite(t, path, "old, and longer", 0o600)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutput(path, []byte("new")); err != nil {
		t.Error(err)
	}
	mustHold(t, path, "new")
	if names := namesIn(t, dir); names != "r.json" {
		t.Errorf("left %s", names)
	}
}

func TestWriteOutput_WritesThroughALinkAndAPipe(t *testing.T) {
	dir := t.TempDir()
	target, link, pipe := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	mustWrite(t, target, "old", 0o600)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var f options.Faults
	OutputFaults(&f, "report", link)
	OutputFaults(&f, "report", pipe) // It does not wait for a reader.
	OutputFaults(&f, "report", os.DevNull)
	if err := f.Err(); err != nil {
		t.Error(err)
	}
	if err := WriteOutput(link, []byte("new")); err != nil {
		t.Error(err)
	}
	mustHold(t, target, "new")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
	read := make(chan string)
	go func() { // Ends with what is written below.
		got, _ := os.ReadFile(pipe)
		read <- string(got)
	}()
	if err := WriteOutput(pipe, []byte("report")); err != nil {
		t.Error(err)
	}
	if got := <-read; got != "report" {
		t.Errorf("read %q", got)
	}
	if err := WriteOutput(os.DevNull, []byte("report")); err != nil {
		t.Error(err)
	}
}

// --report=/dev/stdout > FILE must not write over what was printed.
func TestWriteOutput_OwnOutputGoesBehindWhatWasPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	own := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = own; _ = f.Close() }()
	if _, err := io.WriteString(f, "table\n"); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutput(path, []byte("report\n")); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(f, "end\n"); err != nil {
		t.Fatal(err)
	}
	mustHold(t, path, "table\nreport\nend\n")
}

// What cannot be written is found before a run, not after it, and a try leaves no trace.
func TestOutputFaults_TriesToWrite(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	mustWrite(t, there, "old", 0o600)
	var f options.Faults
	OutputFaults(&f, "report", there)
	OutputFaults(&f, "report", filepath.Join(dir, "new"))
	if err := f.Err(); err != nil {
		t.Error(err)
	}
	mustHold(t, there, "old")
	if names := namesIn(t, dir); names != "there" {
		t.Errorf("left %s", names)
	}
	running, err := os.Executable() // Nobody may write to it, root neither.
	if err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "no", "file"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{running, "/proc/new.json", dangling, filepath.Join(dir, strings.Repeat("n", 256))} {
		var f options.Faults
		OutputFaults(&f, "report", path)
		if err := f.Err(); err == nil || !strings.HasPrefix(err.Error(), "--report: ") || !strings.Contains(err.Error(), "must be a file that can be written to: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSameFileFaults(t *testing.T) {
	dir := t.TempDir()
	there, link, other := filepath.Join(dir, "there"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	mustWrite(t, there, "", 0o600)
	mustWrite(t, other, "", 0o600)
	if err := os.Symlink(there, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		one, two string
		same     bool
	}{
		{"", "", false},
		{there, "", false},
		{there, there, true},
		{there, link, true},
		{there, other, false},
		{there, filepath.Join(dir, "new"), false},
		{filepath.Join(dir, "new"), dir + "/./new", true},
		{filepath.Join(dir, "new"), filepath.Join(dir, "newer"), false},
		{os.DevNull, os.DevNull, false},
	} {
		var f options.Faults
		SameFileFaults(&f, "report", tc.one, "plot", tc.two)
		if err := f.Err(); (err != nil) != tc.same || err != nil && !strings.HasSuffix(err.Error(), "must be another file than that of --plot") {
			t.Errorf("%q and %q: %v", tc.one, tc.two, err)
		}
	}
}

// The key would be overwritten. Its path is not told.
func TestCommon_TheReportIsNotTheKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.json")
	mustWrite(t, key, "", 0o600)
	c := Common{Report: key}
	c.Connection.ServiceAccountKeyFile = key
	var f options.Faults
	c.Faults(&f)
	if err := f.Err(); err == nil || err.Error() != "--report: (set): must be another file than that of --service_account_key_file" {
		t.Errorf("%v", err)
	}
}

func TestNothingToDraw_LeavesNoPlotOfBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.svg")
	var said bytes.Buffer
	if err := NothingToDraw("nothing has arrived", path, &said); err != nil || said.String() != "nothing has arrived: --plot has nothing to draw\n" {
		t.Errorf("said %q, %v", said.String(), err)
	}
	mustWrite(t, path, "old", 0o600)
	said.Reset()
	if err := NothingToDraw("nothing has arrived", path, &said); err != nil || said.String() != "nothing has arrived: --plot has nothing to draw, and "+path+", of an earlier run, is removed\n" {
		t.Errorf("said %q, %v", said.String(), err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	if err := NothingToDraw("", os.DevNull, io.Discard); err != nil {
		t.Error(err)
	}
}

// A file that is mounted by itself cannot be removed: it is left without what it showed.
func TestNothingToDraw_EmptiesAPlotThatCannotBeRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.svg")
	mustWrite(t, path, "old", 0o600)
	busy := func(path string) error { return &os.PathError{Op: "remove", Path: path, Err: syscall.EBUSY} }
	var said bytes.Buffer
	if err := nothingToDraw("nothing has arrived", path, &said, busy); err != nil || said.String() != "nothing has arrived: --plot has nothing to draw, and "+path+", of an earlier run, is emptied\n" {
		t.Errorf("said %q, %v", said.String(), err)
	}
	mustHold(t, path, "")
}
