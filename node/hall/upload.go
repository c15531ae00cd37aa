package hall

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"stoa/protocol"
)

// Uploads receives the files of an operation into temporary files before anything of them is
// processed: a slow sender holds no slot and no transaction. Make it with NewUploads.
type Uploads struct {
	what  string
	spool func() (*os.File, error)
	slots chan struct{}

	mu   sync.Mutex      // guards all below
	of   map[string]bool // accounts whose file is being received
	made map[string]bool // accounts for which a file is being made
}

const (
	processedAtOnce = 2                // files that one process reads or makes at the same time
	maxUploads      = 32               // files being received at the same time; they do not count towards processedAtOnce
	slotWait        = 30 * time.Second // how long a received file waits to be read
)

// NewUploads returns uploads of what, in the singular. spool makes a private temporary file that is
// deleted when it is closed.
func NewUploads(what string, spool func() (*os.File, error)) *Uploads {
	return &Uploads{what: what, spool: spool, slots: make(chan struct{}, processedAtOnce), of: map[string]bool{}, made: map[string]bool{}}
}

// Receive writes an upload of an account into a file, then takes a slot in which to read it.
func (u *Uploads) Receive(ctx context.Context, account string, body io.Reader) (f *os.File, leave func(), err error) {
	arrived, err := u.arrive(account)
	if err != nil {
		return nil, nil, err
	}
	defer arrived()
	if f, err = u.spool(); err != nil {
		return nil, nil, err
	}
	if _, err = io.Copy(f, body); err == nil {
		leave, err = u.await(ctx)
	}
	if err != nil {
		f.Close()
	}
	return f, leave, err
}

// arrive registers a file that is being received, one per account.
func (u *Uploads) arrive(account string) (arrived func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.of[account]:
		return nil, protocol.Errorf(protocol.Conflict, "this account is uploading another %s; wait until that upload is done, or cancel it", u.what)
	case len(u.of) >= maxUploads:
		return nil, protocol.Errorf(protocol.Overloaded, "too many %ss are being uploaded; try again in a minute", u.what)
	}
	u.of[account] = true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.of, account)
	}, nil
}

// await is enter for a received file: it waits up to slotWait for a slot.
func (u *Uploads) await(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	select {
	case u.slots <- struct{}{}:
		return func() { <-u.slots }, nil
	case <-ctx.Done():
		return u.enter()
	}
}

// Export takes one of the slots for a file that is made for an account, one at a time, so that nobody
// takes them all. It fails with conflict while the account makes another, and with overloaded when no slot
// is free.
func (u *Uploads) Export(account string) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.made[account] {
		return nil, protocol.Errorf(protocol.Conflict, "this account is exporting another %s; wait until that is done", u.what)
	}
	free, err := u.enter()
	if err != nil {
		return nil, err
	}
	u.made[account] = true
	return func() {
		free()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.made, account)
	}, nil
}

// enter takes one of the slots. It fails with overloaded when none is free.
func (u *Uploads) enter() (leave func(), err error) {
	select {
	case u.slots <- struct{}{}:
		return func() { <-u.slots }, nil
	default:
		return nil, protocol.Errorf(protocol.Overloaded, "other %ss are being processed; try again in a minute", u.what)
	}
}

// Made returns a spool file that was written to its end as the file of an answer, or closes it.
func Made(f *os.File, name string) (protocol.File, error) {
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return madeFile{f, size, name}, nil
}

type madeFile struct {
	*os.File
	size int64
	name string
}

func (f madeFile) Size() int64  { return f.size }
func (f madeFile) Name() string { return f.name }
