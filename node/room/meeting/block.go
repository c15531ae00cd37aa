package meeting

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Names by which a person refuses requests, next to those of callers.

func blockedMailbox(hash [32]byte) string { return fmt.Sprintf("mailbox:%x", hash) }

// blockedDomains returns the names of a domain and of those above it, down to the one that was registered.
func blockedDomains(domain string) (names []string) {
	domain = strings.ToLower(domain)
	for top := netx.Registrable(domain); ; {
		names = append(names, "domain:"+domain)
		_, above, more := strings.Cut(domain, ".")
		if !more || domain == top || !strings.HasSuffix(above, top) {
			return names
		}
		domain = above
	}
}

// block refuses further requests of the mailbox of a request, or of its domain.
func (m *Meeting) block(ctx context.Context, tx *storage.Tx, id string, what protocol.MeetingBlock) error {
	r, err := tx.Meetings().ByID(ctx, id)
	if err != nil {
		return err
	}
	local, domain, ok := strings.Cut(r.Mail, "@")
	if !ok {
		return protocol.Errorf(protocol.Conflict, "the mail address of the request is deleted; nothing can be blocked by it")
	}
	name, note := blockedMailbox(r.Mailbox), fmt.Sprintf("%.1s…@%s", local, domain)
	if what == protocol.BlockDomain {
		name, note = blockedDomains(domain)[0], domain
	}
	return tx.ContactBlocks().Insert(ctx, &storage.ContactBlock{
		ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: r.Handle, Writer: name, Names: []string{name}, Author: r.Author, ThreadID: r.ID, Note: note,
	})
}

// signsFor reports whether a caller signs with a key in the key directory at a domain.
func signsFor(c protocol.Caller, domain string) bool {
	if c.Standing != protocol.Signed || c.Proof.Level != protocol.ByDirectory || c.Proof.Subject == nil {
		return false
	}
	at, err := url.Parse(*c.Proof.Subject)
	return err == nil && at.Host != "" && netx.Registrable(at.Host) == netx.Registrable(strings.ToLower(domain))
}
