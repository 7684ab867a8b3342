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
	"syscall"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// WriteOutput writes a file that a flag names: whole or not at all where it is a regular one
// that can be replaced, which keeps its permissions, and in place else: in a directory that
// takes no other file, or where the file is mounted by itself. What has no room on its disk
// is not written, and what was there stays. A device or a pipe is written to as it is. What
// is this process's own output goes there, behind what was printed.
func WriteOutput(path string, content []byte) error { return writeOutput(path, content, os.Rename) }

func writeOutput(path string, content []byte, rename func(from, to string) error) error {
	if own := ownOutput(path); own != nil {
		_, err := own.Write(content)
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		info = nil
	}
	if info == nil || info.Mode().IsRegular() {
		if err := replace(path, content, info, rename); err == nil || isFull(err) {
			return err
		}
	}
	return os.WriteFile(path, content, 0o644) // A link stays one.
}

// isFull reports whether a file could not be written for lack of room: written in place,
// it would be lost with what it held.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// replace puts a new file at path, with the permissions that the one there has; was is
// nil where there is none.
func replace(path string, content []byte, was fs.FileInfo, rename func(from, to string) error) error {
	f, err := os.OpenFile(path+"."+strconv.FormatUint(rand.Uint64(), 36), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
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
		err = rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(path))
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
// that is there is removed, or emptied where it cannot be, as one that is mounted by itself:
// left, what an earlier run drew would look like this one's.
func NothingToDraw(why, path string, stderr io.Writer) error {
	return nothingToDraw(why, path, stderr, os.Remove)
}

func nothingToDraw(why, path string, stderr io.Writer, remove func(path string) error) error {
	said := why + ": --plot has nothing to draw"
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && ownOutput(path) == nil {
		gone := "removed"
		if err := remove(path); err != nil {
			if os.Truncate(path, 0) != nil {
				return fmt.Errorf("%s, and what an earlier run drew is still there: %w", said, err)
			}
			gone = "emptied"
		}
		said += ", and " + path + ", of an earlier run, is " + gone
	}
	fmt.Fprintln(stderr, said)
	return nil
}
