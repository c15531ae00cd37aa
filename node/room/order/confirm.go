package order

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// A buyer's mailbox is confirmed by the ticket in the letters about an order, which the page of the order alone does not have. A payment
// that the buyer reported and the shop confirmed is known as confirmed once the buyer is: by an identity, or by the mailbox.

// ticket proves to have read a letter about an order. It needs no row, and ends with the order.
func (o *Orders) ticket(id, mail string) string {
	h := hmac.New(sha256.New, o.MailKey)
	h.Write([]byte("order mailbox\x00" + id + "\x00" + mail))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// identified reports whether the node knows more of the buyer than what the buyer says. The same bare key again is no identity.
func identified(x *storage.StoredOrder) bool {
	return x.MailConfirmed || !x.Anonymous && !strings.HasPrefix(x.Buyer, "key:")
}

// knownBy says how the payment of an order is known that the shop confirmed.
func knownBy(x *storage.StoredOrder) string {
	if x.Reported && identified(x) {
		return protocol.KnownConfirmed
	}
	return protocol.KnownStated
}

// ConfirmMail notes that the buyer has read a letter about the order.
func (o *Orders) ConfirmMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderMail) (protocol.ShopOrder, error) {
	none := protocol.ShopOrder{}
	x, err := byToken(ctx, tx, c, in.Token)
	if err != nil {
		return none, err
	}
	if x, err = locked(ctx, tx, x.ID); err != nil {
		return none, err
	}
	who, err := o.buyerOf(x)
	if err != nil {
		return none, err
	}
	if subtle.ConstantTimeCompare([]byte(in.Ticket), []byte(o.ticket(x.ID, who.Mail))) != 1 {
		return none, protocol.Errorf(protocol.Gone, "this link is not from a letter about the order")
	}
	if !x.MailConfirmed {
		x.MailConfirmed = true
		if x.Known == protocol.KnownStated && knownBy(x) == protocol.KnownConfirmed {
			x.Known = protocol.KnownConfirmed
			if err := o.Receipts.KnownFor(ctx, tx, x.Receipt, x.Known); err != nil {
				return none, err
			}
		}
		if err := tx.Orders().Save(ctx, x); err != nil {
			return none, err
		}
	}
	return o.view(ctx, tx, x)
}

// buyersOf are the names by which the buyer of an order is told. A network is none: others are in it.
func buyersOf(x *storage.StoredOrder) (names []string) {
	if !x.Anonymous && !strings.HasPrefix(x.Buyer, "net:") {
		names = append(names, x.Buyer)
		if agent, owner, ok := strings.Cut(strings.TrimPrefix(x.Buyer, "agent:"), "@"); ok && strings.HasPrefix(x.Buyer, "agent:") {
			names = append(names, "agent:"+agent, "wallet:"+owner)
		}
	}
	if x.By != "" {
		names = append(names, "handle:"+x.By)
	}
	if x.Client != "" {
		names = append(names, "wallet:"+strings.ToLower(x.Client))
	}
	return append(names, fmt.Sprintf("mail:%x", x.Mailbox))
}
