package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stoa/node/out/mail"
	"stoa/node/room/meeting"
	"stoa/protocol/ics"
	"stoa/protocol/netx"
)

// lmtpAddress returns the network and the address of the setting lmtp.
func lmtpAddress(setting string) (network, address string) {
	if path, ok := strings.CutPrefix(setting, "unix:"); ok {
		return "unix", path
	}
	return "tcp", setting
}

// lmtpFaults returns the faults of the setting lmtp.
func (c Config) lmtpFaults(bad func(format string, args ...any)) {
	if c.LMTP == "" {
		return
	}
	if c.SMTP == "" {
		bad("lmtp: it takes answers to mail, and no mail is sent: give smtp and mail-from too")
	}
	network, address := lmtpAddress(c.LMTP)
	host, _, err := net.SplitHostPort(address)
	switch {
	case network == "unix" && (!filepath.IsAbs(address) || len(address) > 100): // sun_path has 104 to 108 bytes
		bad("lmtp: %q is not unix: and an absolute path of at most 100 bytes", c.LMTP)
	case network == "tcp" && (err != nil || !netx.IsLoopback(host)):
		bad("lmtp: %q is not unix:/path nor a host:port of this machine; every program that reaches it can hand over mail", c.LMTP)
	}
}

// listenLMTP opens the address of the setting lmtp. A socket that a dead process left is replaced. The socket
// can be used by its group: the directory decides who reaches it.
func listenLMTP(setting string) (net.Listener, error) {
	network, address := lmtpAddress(setting)
	if network == "unix" {
		if info, err := os.Lstat(address); err == nil && info.Mode()&fs.ModeSocket != 0 {
			conn, err := net.DialTimeout(network, address, time.Second)
			if err == nil {
				conn.Close()
				return nil, fmt.Errorf("%w: lmtp: another process listens at %s", ErrConfig, address)
			}
			os.Remove(address)
		}
	}
	l, err := net.Listen(network, address)
	if err == nil && network == "unix" {
		err = os.Chmod(address, 0o660)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: lmtp: %w", ErrConfig, err)
	}
	return l, nil
}

// receiver returns what takes answers and bounces, nil on a node that takes none.
func (n *Node) receiver() *mail.Receiver {
	l, ok := n.Accounts.Mail.(letters)
	if !ok || n.lmtp == nil {
		return nil
	}
	return &mail.Receiver{Host: l.Host, From: l.From, Return: l.Return(), Handle: incoming{n.Meeting, n.log, lookupTXT}.handle}
}

func lookupTXT(name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return net.DefaultResolver.LookupTXT(ctx, name)
}

// An incoming handles the mails that come in.
type incoming struct {
	meeting *meeting.Meeting
	log     *slog.Logger
	lookup  func(name string) ([]string, error)
}

// handle hands a bounce or an answer to the room of meetings. Any other mail is dropped: nobody reads it
// here, and a report about it would be sent to the address that its sender claims.
func (h incoming) handle(ctx context.Context, in mail.Incoming) error {
	var err error
	if in.Bounced != "" {
		if b, ok := mail.ReadBounce(in.Raw); ok && b.Hard {
			err = h.meeting.Bounced(ctx, in.Bounced)
		}
	} else {
		reply, unread := ics.ReadReply(in.Raw)
		if unread != nil {
			if !errors.Is(unread, ics.ErrNoReply) {
				h.log.Debug("mail is not an answer", "err", unread)
			}
			return nil
		}
		err = h.meeting.Answered(ctx, in.Answered, reply, func() []string { return mail.Signers(in.Raw, h.lookup) })
	}
	if err != nil {
		h.log.Error("store a mail", "err", err)
	}
	return err
}
