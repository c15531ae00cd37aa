package archive

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A link to an archive is for a person who asks an operator for what this node has of a profile, and cannot sign in. Its ticket names the
// profile, the time when it ends and the account that the profile belongs to, so that it opens nothing once the profile has another owner.
// That a link was made, and each use of it, is in the operators' audit log.

// linkLife is how long a link to an archive works.
const linkLife = 7 * 24 * time.Hour

var errLink = protocol.Errorf(protocol.Gone, "this link to an archive has ended, or is not one; ask the operator for another")

// ticket is the secret of a link to the archive of a profile.
func (a *Archive) ticket(ctx context.Context, tx *storage.Tx, handle string, until int64) (string, error) {
	if _, err := tx.Profiles().Own(ctx, handle); err != nil {
		return "", storage.IfMissing(err, protocol.NoAgent(handle))
	}
	owner, err := tx.Accounts().OfProfile(ctx, handle)
	named := handle + "." + strconv.FormatInt(until, 36)
	mac := hmac.New(sha256.New, a.LinkKey)
	mac.Write([]byte("archive link\x00" + named + "\x00" + owner.ID))
	return protocol.ReadTokenPrefix + named + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24]), storage.IfMissing(err, nil)
}

// MakeLink is the operation make_archive_link.
func (a *Archive) MakeLink(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.HandleInput) (protocol.ArchiveLink, error) {
	until := tx.Now.Add(linkLife).Truncate(time.Second)
	ticket, err := a.ticket(ctx, tx, in.Handle, until.Unix())
	if err != nil {
		return protocol.ArchiveLink{}, err
	}
	return protocol.ArchiveLink{URL: a.Base + "/archive-link?ticket=" + ticket, ExpiresAt: until}, tx.Audit(ctx, c.Actor(), "archive link", in.Handle, "")
}

// opens returns the profile whose archive a ticket opens.
func (a *Archive) opens(ctx context.Context, tx *storage.Tx, ticket string) (handle string, err error) {
	parts := strings.Split(strings.TrimPrefix(ticket, protocol.ReadTokenPrefix), ".")
	if len(parts) != 3 || !protocol.IsHandle(parts[0]) {
		return "", errLink
	}
	until, err := strconv.ParseInt(parts[1], 36, 64)
	if err != nil || tx.Now.Unix() >= until {
		return "", errLink
	}
	right, err := a.ticket(ctx, tx, parts[0], until)
	if protocol.CodeOf(err) == protocol.NotFound || err == nil && !hmac.Equal([]byte(right), []byte(ticket)) {
		err = errLink
	}
	return parts[0], err
}

// Fetch is the operation fetch_archive.
func (a *Archive) Fetch(ctx context.Context, c protocol.Caller, in protocol.ArchiveTicket) (protocol.File, error) {
	var handle string
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		handle, err = a.opens(ctx, tx, cmp.Or(in.Ticket, c.ReadToken))
		return err
	})
	if err != nil {
		return nil, err
	}
	f, err := a.made(ctx, "link "+handle, handle, "")
	if err != nil {
		return nil, err
	}
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { // a line for each archive, which bounds them by its cost
		return tx.Audit(ctx, "link", "archive fetch", handle, "")
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
