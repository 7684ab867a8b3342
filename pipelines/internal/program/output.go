package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// WriteOutput writes a file that a flag names: whole or not at all where it is a regular
// one, which keeps its permissions, and in place where its directory does not let it be
// replaced. A device or a pipe is written to as it is. What is this process's own output
// goes there, behind what was printed.
func WriteOutput(path string, content []byte) error {
	if own := ownOutput(path); own != nil {
		_, err := own.Write(content)
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return replace(path, content, nil)
	}
	if info.Mode().IsRegular() {
		if err := replace(path, content, info); !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return os.WriteFile(path, content, 0o644) // A link stays one.
}

// replace puts a new file at path, with the permissions that the one there has; was is
// nil where there is none.
func replace(path string, content []byte, was fs.FileInfo) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	if was != nil {
		err = f.Chmod(was.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// createBeside creates a file that becomes the one at path by being renamed.
func createBeside(path string) (*os.File, error) {
	return os.OpenFile(path+"."+strconv.FormatUint(rand.Uint64(), 36), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// ownOutput is the output of this process that path is, nil if none: /dev/stdout, or the
// file that it goes to.
func ownOutput(path string) *os.File {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if its, err := own.Stat(); err == nil && os.SameFile(info, its) {
			return own
		}
	}
	return nil
}

// OutputFaults records in f that the file that a flag names cannot be written to:
// found out after an hour's run, it would be too late. It tries, and leaves no trace.
func OutputFaults(f *options.Faults, flagName, path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		f.Add("--"+flagName, fmt.Sprintf("%q", path), "must be in a directory that exists")
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		f.Add("--"+flagName, fmt.Sprintf("%q", path), "must be a file, it is a directory")
	} else if err := tryOutput(path); err != nil {
		f.Add("--"+flagName, fmt.Sprintf("%q", path), "must be a file that can be written to: "+reason(err))
	}
}

// tryOutput tries what WriteOutput does, and writes nothing.
func tryOutput(path string) error {
	if ownOutput(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return nil // To open it is to wait for who reads it.
	case err == nil:
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return errors.New("it is a link to what does not exist")
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// reason is err without the path, which stands beside it, or is none that was named.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// SameFileFaults records in f that a flag names the file that another one names, which it
// would overwrite. A device may be named twice.
func SameFileFaults(f *options.Faults, flagName, path, otherFlag, other string) {
	if path == "" || other == "" || !sameFile(path, other) {
		return
	}
	f.Add("--"+flagName, fmt.Sprintf("%q", path), "must be another file than that of --"+otherFlag)
}

// sameFile reports whether two paths lead to one regular file, be it there or not.
func sameFile(one, two string) bool {
	x, errX := os.Stat(one)
	y, errY := os.Stat(two)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	if errX == nil || errY == nil || filepath.Base(one) != filepath.Base(two) {
		return false
	}
	x, errX = os.Stat(filepath.Dir(one))
	y, errY = os.Stat(filepath.Dir(two))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// NothingToDraw says, and why, that --plot has nothing to put into its file. A regular one
// that is there is removed: left, what an earlier run drew would look like this one's.
func NothingToDraw(why, path string, stderr io.Writer) error {
	said := why + ": --plot has nothing to draw"
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && ownOutput(path) == nil {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("%s, and what an earlier run drew is still there: %w", said, err)
		}
		said += ", and " + path + ", of an earlier run, is removed"
	}
	fmt.Fprintln(stderr, said)
	return nil
}
