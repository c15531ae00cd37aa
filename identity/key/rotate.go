package key

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// nextMaster is the end of the name of the next master key, beside the present one, while the key is rotated.
const nextMaster = ".next"

// A Rotation replaces a master key by another one.
type Rotation struct {
	path      string
	was, next *Sealer
}

// RotateMaster begins to rotate the master key in a file, or goes on with it: the next key is in a file beside it.
func RotateMaster(path string) (*Rotation, error) {
	was, err := loadMaster(path)
	if err != nil {
		return nil, err
	}
	next, err := loadMaster(path + nextMaster)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createMaster(path + nextMaster); err == nil {
			next, err = loadMaster(path + nextMaster)
		}
	}
	return &Rotation{path, was, next}, err
}

// Again seals with the next key what is sealed with the present one; nil for what is sealed with the next one already.
func (r *Rotation) Again(purpose string, sealed []byte) ([]byte, error) {
	if _, err := r.next.Open(purpose, sealed); err == nil {
		return nil, nil
	}
	secret, err := r.was.Open(purpose, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return r.next.Seal(purpose, secret), nil
}

// Done puts the next key in the place of the present one, which is kept in another file. There is a master key in the file at
// every moment.
func (r *Rotation) Done(now time.Time) (kept string, err error) {
	kept = r.path + ".old-" + now.UTC().Format("20060102T150405Z")
	if err := os.Link(r.path, kept); err != nil {
		return "", fmt.Errorf("keep the former master key: %w", err)
	}
	if err := os.Rename(r.path+nextMaster, r.path); err != nil {
		return "", fmt.Errorf("put the next master key in place: %w", err)
	}
	d, err := os.Open(filepath.Dir(r.path))
	if err != nil {
		return "", err
	}
	return kept, errors.Join(d.Sync(), d.Close())
}
