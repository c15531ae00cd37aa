package meeting

import (
	"slices"
	"strings"

	"stoa/protocol/netx"
)

// disposable are well-known domains whose mailboxes anyone has for some minutes. The list is short on purpose: a mailbox
// there may be an honest one, so that it is only marked, and who wants to be sure asks for requireVerifiedDomain.
var disposable = []string{
	"10minutemail.com", "burnermail.io", "discard.email", "dispostable.com", "emailondeck.com", "fakeinbox.com", "getnada.com", "grr.la",
	"guerrillamail.com", "guerrillamail.info", "guerrillamail.net", "guerrillamail.org", "inboxkitten.com", "maildrop.cc", "mailinator.com",
	"mailnesia.com", "mintemail.com", "moakt.com", "mohmal.com", "sharklasers.com", "spamgourmet.com", "temp-mail.org", "tempr.email",
	"throwawaymail.com", "trashmail.com", "yopmail.com",
}

// isDisposable reports whether a mail address is at a domain of such mailboxes, or below one.
func isDisposable(mail string) bool {
	_, domain, _ := strings.Cut(strings.ToLower(mail), "@")
	return slices.Contains(disposable, netx.Registrable(domain))
}
