package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// sockets are what a supervisor opened for this process (sd_listen_fds(3)), so that no right to open ports below 1024 is needed, and a restart refuses
// nobody.
type sockets map[string]net.Listener

// inherited takes the sockets over, once: a child process does not find them.
func inherited() (sockets, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 64 {
		return nil, fmt.Errorf("%w: LISTEN_FDS: %q is no number of sockets", ErrConfig, count)
	}
	all := sockets{}
	for i := range n {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		f := os.NewFile(uintptr(3+i), name) // SD_LISTEN_FDS_START
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w: the socket %d that the supervisor gives is none to listen on: %w", ErrConfig, i+1, err), all.close())
		}
		if _, twice := all[name]; twice || name == "" {
			name += "#" + strconv.Itoa(i)
		}
		all[name] = l
	}
	return all, nil
}

// take returns the socket of a setting, by its name or else by its port; nil where there is none.
func (s sockets) take(setting, address string) net.Listener {
	_, port, _ := net.SplitHostPort(address)
	found := ""
	for name, l := range s {
		if a, ok := l.Addr().(*net.TCPAddr); ok && found == "" && port == strconv.Itoa(a.Port) {
			found = name
		}
		if name == setting {
			found = name
			break
		}
	}
	l := s[found]
	delete(s, found)
	return l
}

// rest refuses sockets that no setting took: what connects to them would wait for ever.
func (s sockets) rest() error {
	var faults []error
	for name, l := range s {
		faults = append(faults, fmt.Errorf("%w: the supervisor gives a socket %s (%s), and no setting listens there: name it listen, http-listen or "+
			"operator-listen (FileDescriptorName of systemd), or give it the port of one", ErrConfig, l.Addr(), name))
	}
	return errors.Join(faults...)
}

func (s sockets) close() error {
	var errs []error
	for _, l := range s {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
