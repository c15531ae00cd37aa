//go:build unix

package hall

import "syscall"

const canPeek = true

// peek reports whether a socket is open at the other side: there is something to read, or may be later.
func peek(fd int) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
}
