package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"stoa/node/out/s3"
)

// A Stored is a file in a place.
type Stored struct {
	Name string
	Size int64
}

// A Place keeps backups. A file is there whole or not at all.
type Place interface {
	String() string // for the operator: no secret
	List(ctx context.Context) ([]Stored, error)
	// Put writes a file; nothing has the name before write has returned nil and everything is on disk.
	Put(ctx context.Context, name string, write func(io.Writer) error) error
	Open(ctx context.Context, f Stored) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
	// Sweep removes what a process that was killed left of files whose names begin so.
	Sweep(ctx context.Context, prefix string) error
}

// A Directory is a place on this machine, or what is mounted on it.
type Directory string

const partial = ".partial"

func (d Directory) String() string { return string(d) }

// List lists the files.
func (d Directory) List(context.Context) (all []Stored, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			all = append(all, Stored{e.Name(), info.Size()})
		}
	}
	return all, nil
}

// Put writes a file under another name, and renames it when it is on disk.
func (d Directory) Put(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	temp := filepath.Join(string(d), "."+name+partial)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, filepath.Join(string(d), name))
	}
	if err != nil {
		return errors.Join(full(string(d), err), os.Remove(temp))
	}
	return syncDir(string(d))
}

// full says what to do when a disk is full.
func full(where string, err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return fmt.Errorf("there is no room left in %s: make room, or move the backups elsewhere; those that are there are kept (%w)", where, err)
}

// fullCopy is full for the copy that SQLite makes, which has words of its own.
func fullCopy(where string, err error) error {
	if err != nil && strings.Contains(err.Error(), "disk is full") {
		return full(where, fmt.Errorf("%w (%w)", err, syscall.ENOSPC))
	}
	return err
}

// syncDir makes a rename outlast a failure of power.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // of some network file systems
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Open opens a file.
func (d Directory) Open(_ context.Context, f Stored) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), filepath.Base(f.Name)))
}

// Delete deletes a file; it is no error when there is none.
func (d Directory) Delete(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(string(d), filepath.Base(name)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes files that were not finished.
func (d Directory) Sweep(_ context.Context, prefix string) (err error) {
	left, _ := filepath.Glob(filepath.Join(string(d), "."+prefix+"*"+partial))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// A Bucket is a place on a server that speaks the API of S3.
type Bucket struct {
	*s3.Bucket
	// Expected says how many bytes a backup may have, so that its parts suffice; nil means that parts need not grow.
	Expected func(ctx context.Context) int64
}

const maxParts = 9000 // S3 takes 10,000

func (b Bucket) String() string { return "s3://" + b.Name + "/" + b.Prefix }

// List lists the objects.
func (b Bucket) List(ctx context.Context) (all []Stored, err error) {
	objects, err := b.Bucket.List(ctx)
	for _, o := range objects {
		all = append(all, Stored(o))
	}
	return all, err
}

// Put uploads an object in parts.
func (b Bucket) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	sized := *b.Bucket
	if b.Expected != nil {
		sized.PartSize = min(max(sized.PartSize, 8<<20, int(b.Expected(ctx)/maxParts)), s3.MaxPart-1<<20)
	}
	return sized.Put(ctx, name, write)
}

// Open reads an object.
func (b Bucket) Open(ctx context.Context, f Stored) (io.ReadCloser, error) {
	return io.NopCloser(b.Bucket.Open(ctx, s3.Object(f))), nil
}

// Sweep ends uploads that were not finished.
func (b Bucket) Sweep(ctx context.Context, prefix string) error { return b.AbortUploads(ctx, prefix) }
