package leave

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// The letter that announces a deletion has a link that undoes it, for who cannot or need not sign in. Its ticket is a MAC of what leaves and when
// it was hidden, so it needs no row: it ends when the deletion is undone, by it or otherwise, and after the seven days; a later deletion has another.

var errUndo = protocol.Errorf(protocol.Gone, "this link has ended: the deletion was undone, or its seven days are over")

// ticket is the secret of the link that undoes a deletion.
func (l *Leave) ticket(of *storage.Leaving) string {
	mac := hmac.New(sha256.New, l.LinkKey)
	mac.Write([]byte("undo link\x00" + of.Subject + "\x00" + strconv.FormatInt(of.HiddenAt.UnixMilli(), 10)))
	return protocol.ReadTokenPrefix + of.Subject + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

// Link returns the address that undoes the deletion of a profile by its handle, or of an account by its id; "" when it cannot be undone now.
func (l *Leave) Link(ctx context.Context, tx *storage.Tx, subject string) (string, error) {
	of, err := tx.Leavings().BySubject(ctx, subject)
	if err != nil || of.HiddenAt.IsZero() || of.Erasing {
		return "", storage.Missing(err, nil)
	}
	return l.Base + "/undo?ticket=" + l.ticket(of), nil
}

// Undo undoes the deletion that a ticket names.
func (l *Leave) Undo(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.UndoTicket) (protocol.None, error) {
	ticket := cmp.Or(in.Ticket, c.ReadToken)
	if ticket == "" {
		return protocol.None{}, protocol.Errorf(protocol.Unauthorized, "send the ticket of the link as Authorization: Bearer")
	}
	subject, _, _ := strings.Cut(strings.TrimPrefix(ticket, protocol.ReadTokenPrefix), ".")
	of, err := tx.Leavings().BySubject(ctx, subject)
	switch {
	case err != nil:
		return protocol.None{}, storage.IfMissing(err, errUndo)
	case of.HiddenAt.IsZero(), of.Erasing, !hmac.Equal([]byte(ticket), []byte(l.ticket(of))), !tx.Now.Before(of.HiddenAt.Add(protocol.UndoFor)):
		return protocol.None{}, errUndo
	case protocol.IsID(protocol.AccountID, subject):
		return protocol.None{}, l.Return(ctx, tx, subject)
	}
	if err := l.undo(ctx, tx, of); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, "link", "profile restore", subject, "")
}
