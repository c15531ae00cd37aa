package hall

import "syscall"

// A poll is a set of sockets that tells which the other side has closed (epoll(7)).
type poll struct {
	fd     int
	events [128]syscall.EpollEvent
}

// idleWait is the longest wait for a socket, in milliseconds; then run checks whether the set is empty.
const idleWait = 1000

func newPoll() (*poll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return &poll{fd: fd}, err
}

// add adds a socket, which wait returns once.
func (p *poll) add(fd int, id int32) error {
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: id})
}

func (p *poll) remove(fd int) {
	syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_DEL, fd, &syscall.EpollEvent{})
}

// wait returns the ids of sockets that were closed; none after idleWait.
func (p *poll) wait() (ids []int32) {
	n, _ := syscall.EpollWait(p.fd, p.events[:], idleWait)
	for _, e := range p.events[:max(n, 0)] {
		ids = append(ids, e.Fd)
	}
	return ids
}

func (p *poll) close() { syscall.Close(p.fd) }
