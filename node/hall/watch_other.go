//go:build !linux

package hall

import "errors"

// A poll cannot be made: each connection has a goroutine of its own.
type poll struct{}

func newPoll() (*poll, error)      { return nil, errors.ErrUnsupported }
func (*poll) add(int, int32) error { return errors.ErrUnsupported }
func (*poll) remove(int)           {}
func (*poll) wait() []int32        { return nil }
func (*poll) close()               {}
