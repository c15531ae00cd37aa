package archive

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/storage"
)

// A receiptRecord is one line of receipts.ndjson. What the receipt says of its order is taken from its claims.
type receiptRecord struct {
	Receipt     string                `json:"receipt" maxLength:"4096" doc:"The compact JWS."`
	Buyer       string                `json:"buyer,omitempty" maxLength:"80"`
	RevokedAt   *time.Time            `json:"revokedAt,omitempty"`
	Reason      string                `json:"reason,omitempty" maxLength:"300"`
	LineItems   []protocol.OrderLine  `json:"lineItems,omitempty" maxItems:"100"`
	Adjustments []protocol.Adjustment `json:"adjustments,omitempty" maxItems:"50"`
}

// nodeKeys is node-keys.json, a JWK Set: the keys of the node that made the archive, with which its
// receipts are verified when it is gone.
type nodeKeys struct {
	Keys []protocol.PublicJWK `json:"keys" maxItems:"10"`
}

// receipts writes the order receipts of a business, newest first. Without any there is no member: older
// nodes refuse members that they do not know.
func (e *exporting) receipts(ctx context.Context) error {
	first, err := e.tx.OrderReceipts().List(ctx, e.handle, "", protocol.MaxLimit, "")
	if err != nil || len(first.Items) == 0 {
		return err
	}
	return e.member(receiptsFile, func(line func(any) error) error {
		for page := first; ; {
			for _, s := range page.Items {
				if err := line(receiptRecord{s.Token, s.Buyer, s.RevokedAt, s.Reason, s.Lines, s.Adjustments}); err != nil {
					return err
				}
			}
			if page.Next == nil {
				return nil
			}
			if page, err = e.tx.OrderReceipts().List(ctx, e.handle, "", protocol.MaxLimit, *page.Next); err != nil {
				return err
			}
		}
	})
}

// nodeKeys writes the keys that verify receipts of this node, when the profile has receipts.
func (e *exporting) nodeKeys(ctx context.Context) error {
	found, err := e.tx.OrderReceipts().List(ctx, e.handle, "", 1, "")
	if err != nil || len(found.Items) == 0 {
		return err
	}
	raw, err := key.MarshalSet([]key.Public{e.Signer.Published()})
	if err != nil {
		return err
	}
	return e.one(nodeKeysFile, append(raw, '\n'))
}

// readNodeKeys reads the keys in the archive. They are used only when the operator vouches for it.
func (im *importing) readNodeKeys(r record) error {
	if err := im.decode(r, &nodeKeys{}); err != nil {
		return err
	}
	set, err := key.ParseSet(r.raw)
	if err != nil {
		return refused("%s is not a JWK Set", r.file)
	}
	if im.Vouch && im.manifest.Node != im.Base {
		im.nodeKeys = set
	}
	return nil
}

// receipt reads one receipt. left is the reason why it is not stored, "" when it is. A receipt is stored
// only if the node that made the archive issued it, and that node's signatures on archive and receipt are
// valid: then its revocation is that node's word too, and none is forged.
func (im *importing) receipt(r record) (s storage.StoredReceipt, left string, err error) {
	var in receiptRecord
	if err := im.decode(r, &in); err != nil {
		return s, "", err
	}
	if im.profile.Draft.Kind == protocol.Person {
		return s, "", refused("the profile of a person cannot have receipts")
	}
	if r.n > protocol.MaxOrderReceipts {
		return s, "", refused("a business has at most %d receipts", protocol.MaxOrderReceipts)
	}
	if !im.signed {
		return s, im.why, nil
	}
	c, ok := im.claims(in.Receipt)
	if !ok {
		return s, "the node that made the archive did not issue them to this profile", nil
	}
	order := protocol.NewOrderReceipt{Order: c.Order, Client: c.Client, Buyer: in.Buyer, PaidAt: time.Unix(c.PaidAt, 0).UTC(), LineItems: in.LineItems,
		Total: protocol.MoneyDraft{Currency: c.Currency, Amount: protocol.Decimal(c.Amount)}}
	raw, err := json.Marshal(order)
	if err != nil {
		return s, "", refused("%s, record %d: %w", r.file, r.n, err)
	}
	if err := im.decode(record{r.file, r.n, raw}, &order); err != nil {
		return s, "", err
	}
	minor, fault := order.Total.Minor()
	if fault != nil || !protocol.IsID(protocol.ReceiptID, c.ID) || c.PaidAt <= 0 || len(c.Agent) > 200 ||
		c.PaidAt > c.IssuedAt+int64(protocol.PaidAhead/time.Second) { // clocks differ
		return s, "", refused("%s, record %d: the claims are not those of a receipt", r.file, r.n)
	}
	s = storage.StoredReceipt{ID: c.ID, Order: c.Order, Agent: c.Agent, Client: c.Client, Buyer: in.Buyer, Currency: c.Currency, Minor: minor,
		PaidAt: order.PaidAt, IssuedAt: time.Unix(c.IssuedAt, 0).UTC(), RevokedAt: in.RevokedAt, Reason: in.Reason, Token: in.Receipt,
		ReceiptDoc: storage.ReceiptDoc{Lines: in.LineItems, Adjustments: in.Adjustments}}
	if c.Issuer != im.Base {
		s.ID, s.Issuer = protocol.ForeignReceiptID(c.Issuer, c.ID, s.PaidAt), c.Issuer
	}
	return s, "", nil
}

// claims returns the claims of a receipt if the node that made the archive issued it to the profile. An
// archive of this node may also have receipts of others, which this node verified when they came.
func (im *importing) claims(token string) (c protocol.OrderReceiptClaims, ok bool) {
	payload, _, err := im.nodeKeys.VerifyCompact(token, protocol.OrderReceiptType, protocol.MaxReceiptToken, time.Now())
	if err == nil {
		err = strictjson.DecodeLoose(payload, &c)
		return c, err == nil && c.Issuer == im.manifest.Node && c.Shop == im.manifest.Handle
	}
	parts := strings.Split(token, ".")
	if im.manifest.Node != im.Base || im.Vouch || len(parts) != 3 {
		return c, false
	}
	if payload, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		err = strictjson.DecodeLoose(payload, &c)
	}
	return c, err == nil && c.Issuer != im.Base
}

func (im *importing) receiptStep(r record) (step, error) {
	s, left, err := im.receipt(r)
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error { return im.storeReceipt(ctx, tx, s, left) }}, err
}

// storeReceipt stores a receipt unless it is here: what is here does not change.
func (im *importing) storeReceipt(ctx context.Context, tx *storage.Tx, s storage.StoredReceipt, left string) error {
	leftOut := func(why string) error {
		im.report.Receipts.LeftOut++
		im.note("order receipts were left out: %s", why)
		return nil
	}
	if left != "" {
		return leftOut(left)
	}
	switch here, err := tx.OrderReceipts().ByID(ctx, s.ID); {
	case err == nil && here.Handle == im.handle:
		im.report.Receipts.Same++
		return nil
	case err == nil:
		return leftOut("another profile here has them")
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	s.Handle, s.IssuedAt = im.handle, notAfter(s.IssuedAt, tx.Now)
	if s.RevokedAt != nil {
		s.RevokedAt = new(notAfter(*s.RevokedAt, tx.Now))
	}
	err := tx.OrderReceipts().Import(ctx, s, protocol.MaxOrderReceipts)
	if errors.Is(err, storage.ErrFull) {
		return leftOut("the profile has as many as it can have")
	}
	if err == nil {
		im.report.Receipts.New++
	}
	return err
}
