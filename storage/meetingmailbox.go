package storage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"stoa/protocol"
)

// A Mailbox is what limits mail about meetings to one address. It is known by a keyed hash alone.
type Mailbox struct {
	Hash    [32]byte
	SentAt  time.Time // of the last confirmation mail
	KnownAt time.Time // likewise, of the last that a known caller caused
	Sent    int       // confirmation mails since a link was used last
	Stopped bool      // no more mail about meetings
	Bounced bool      // mail to it came back for good
}

// MailboxOf returns the name under which a mailbox is counted: a keyed hash of the address without what its owner may choose freely,
// such as +tag.
func MailboxOf(key []byte, address string) (hash [32]byte) {
	const gmail = "gmail.com"
	local, domain, _ := strings.Cut(strings.ToLower(address), "@")
	local, _, _ = strings.Cut(local, "+")
	if domain == "googlemail.com" {
		domain = gmail
	}
	if domain == gmail {
		local = strings.ReplaceAll(local, ".", "")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("meeting mailbox\x00" + local + "@" + domain))
	copy(hash[:], mac.Sum(nil))
	return hash
}

// Next returns when the next confirmation mail may go to the mailbox, for a known caller or a stranger.
// What strangers cause never delays what a known caller does.
func (b Mailbox) Next(known bool) time.Time {
	switch {
	case known && b.KnownAt.IsZero():
		return time.Time{}
	case known:
		return b.KnownAt.Add(protocol.ConfirmMailKnown)
	}
	return b.SentAt.Add(protocol.ConfirmMailWait(b.Sent))
}

var (
	mailboxTable  = tableOf[Mailbox]("meeting_mailbox")
	mailboxByHash = mailboxTable.from + `WHERE hash = ?`
)

// Mailbox returns what is known of a mailbox; of one that is not known, an empty one.
func (ms Meetings) Mailbox(ctx context.Context, hash [32]byte) (Mailbox, error) {
	b, err := orZero(find[Mailbox](ctx, ms.tx, mailboxByHash, hash[:]))
	b.Hash = hash
	return b, err
}

// LockMailbox is Mailbox for who changes it: another process waits for this transaction to end.
func (ms Meetings) LockMailbox(ctx context.Context, hash [32]byte) (Mailbox, error) {
	if err := ms.tx.lockName(ctx, "mailbox "+hex.EncodeToString(hash[:])); err != nil {
		return Mailbox{}, err
	}
	return ms.Mailbox(ctx, hash)
}

// PutMailbox stores what is known of a mailbox.
func (ms Meetings) PutMailbox(ctx context.Context, b Mailbox) error {
	return mailboxTable.put(ctx, ms.tx, &b, "hash")
}

const oldMailboxes = `NOT stopped AND sent_at < ? ORDER BY sent_at LIMIT 1000`

// PruneMailboxes forgets mailboxes that got their last confirmation mail before a time, except those
// that want none, at most a thousand per call, and returns how many.
func (ms Meetings) PruneMailboxes(ctx context.Context, before time.Time) (int, error) {
	return ms.tx.deleteSome(ctx, "meeting_mailbox", "hash", oldMailboxes, millis(before))
}
