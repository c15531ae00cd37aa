package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A PaymentAccount is where the bids on the attention board of a profile are paid to. Sealed holds
// the provider's secrets, encrypted under the node's master key.
type PaymentAccount struct {
	ID, Handle           string
	Provider             protocol.PayName
	Hook                 string // last part of the address of the provider's webhook
	PaymentAccountDoc    `db:"doc"`
	Sealed               []byte `db:",null"` // nil for none
	CreatedAt, UpdatedAt time.Time
	RetiredAt            *time.Time // replaced or deleted; kept for refunds
}

// A PaymentAccountDoc is what is public or the owner's own of a payment account.
type PaymentAccountDoc struct {
	VPA            string `json:"vpa,omitempty"`
	PayeeName      string `json:"payeeName,omitempty"`
	KeyID          string `json:"keyId,omitempty"`
	HasKeySecret   bool   `json:"hasKeySecret,omitempty"`
	WebhookSecrets int    `json:"webhookSecrets,omitempty"`
	LegalName      string `json:"legalName,omitempty"`
	Address        string `json:"address,omitempty"`
	GSTIN          string `json:"gstin,omitempty"`
	GSTPercent     string `json:"gstPercent,omitempty"`
	Test           bool   `json:"test,omitempty"` // no money moves
}

var paymentAccountTable = tableOf[PaymentAccount]("payment_account")

// Payment accounts by their keys.
var (
	paymentAccountByID   = paymentAccountTable.from + `WHERE id = ?`
	paymentAccountByHook = paymentAccountTable.from + `WHERE hook = ? AND provider = ?`
	paymentAccountsOf    = paymentAccountTable.from + `WHERE handle = ? ORDER BY id DESC LIMIT 100`
)

// PaymentAccounts reads and writes the accounts by which bids are paid.
type PaymentAccounts struct{ tx *Tx }

func (tx *Tx) PaymentAccounts() PaymentAccounts { return PaymentAccounts{tx} }

// ByID returns a payment account, also a retired one; ErrNotFound when there is none.
func (as PaymentAccounts) ByID(ctx context.Context, id string) (*PaymentAccount, error) {
	return pointer(find[PaymentAccount](ctx, as.tx, paymentAccountByID, id))
}

// ByHook returns the account whose provider posts its events to that address.
func (as PaymentAccounts) ByHook(ctx context.Context, provider, hook string) (*PaymentAccount, error) {
	return pointer(find[PaymentAccount](ctx, as.tx, paymentAccountByHook, hook, provider))
}

// OfProfile returns the accounts of a profile, the newest first, retired ones included.
func (as PaymentAccounts) OfProfile(ctx context.Context, handle string) ([]PaymentAccount, error) {
	return list[PaymentAccount](ctx, as.tx, paymentAccountsOf, handle)
}

// Put stores an account. A new one gets an id.
func (as PaymentAccounts) Put(ctx context.Context, a *PaymentAccount) error {
	if a.ID == "" {
		a.ID, a.CreatedAt = protocol.NewID(protocol.PayeeID, as.tx.Now), as.tx.Now
	}
	a.UpdatedAt = as.tx.Now
	return paymentAccountTable.put(ctx, as.tx, a, "id", "doc", "sealed", "updated_at", "retired_at")
}

// paymentAccountOwes asks for bids and orders that are not over, for those for which a bank may still answer, for
// paid orders that may be sent back, and for refunds that are not made.
const paymentAccountOwes = `SELECT 1 FROM bid WHERE account = ? AND state IN ('held', 'claimed', 'live', 'refund_due', 'refunding', 'refund_failed')
	UNION ALL SELECT 1 FROM bid WHERE account = ? AND state IN ('lapsed', 'withdrawn', 'unconfirmed') AND moved_at > ?
	UNION ALL SELECT 1 FROM refund r JOIN payment p ON p.id = r.payment WHERE r.state <> 'done' AND p.account = ?
		AND r.board IN (SELECT b.id FROM attention_board b JOIN payment_account a ON a.handle = b.handle WHERE a.id = ?)
	UNION ALL SELECT 1 FROM refund r JOIN payment p ON p.id = r.payment WHERE r.state <> 'done' AND p.account = ?
		AND r.board IN (SELECT t.id FROM till t JOIN payment_account a ON a.handle = t.handle WHERE a.id = ?)
	UNION ALL SELECT 1 FROM shop_order WHERE account = ? AND state = 'awaiting_payment'
	UNION ALL SELECT 1 FROM shop_order WHERE account = ? AND state = 'canceled' AND moved_at > ?
	UNION ALL SELECT 1 FROM shop_order WHERE account = ? AND state IN ('paid', 'fulfilled') AND moved_at > ? LIMIT 1`

// ordersReturn is how long a paid order can be sent back at the provider by an account that is not in use any more.
const ordersReturn = 180 * 24 * time.Hour

// Owes reports whether a bid may still be paid or refunded by an account.
func (as PaymentAccounts) Owes(ctx context.Context, id string) (bool, error) {
	late := millis(as.tx.Now.Add(-protocol.LateFor))
	return as.tx.exists(ctx, paymentAccountOwes, id, id, late, id, id, id, id, id, id, late, id, millis(as.tx.Now.Add(-ordersReturn)))
}

// disown retires the accounts of a profile that is deleted and separates them from its handle.
func (as PaymentAccounts) disown(ctx context.Context, handle string) error {
	all, err := as.OfProfile(ctx, handle)
	if err != nil || len(all) == 0 {
		return err
	}
	if _, err := as.tx.write(ctx, `UPDATE payment_account SET handle = '', retired_at = COALESCE(retired_at, ?) WHERE handle = ?`,
		millis(as.tx.Now), handle); err != nil {
		return err
	}
	for _, a := range all {
		owes, err := as.Owes(ctx, a.ID)
		if err != nil {
			return err
		}
		// Receipts have what they say of the payee. Of an account that money may still come to, the rest goes with the secrets.
		a.PayeeName, a.LegalName, a.Address, a.GSTIN, a.GSTPercent = "", "", "", "", ""
		if err := paymentAccountTable.update(ctx, as.tx, &a, "id", "doc"); err != nil {
			return err
		}
		if owes {
			continue
		}
		if err := as.DropSecrets(ctx, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// DropSecrets deletes the secrets of a retired account, and of one whose profile is deleted everything but the provider.
func (as PaymentAccounts) DropSecrets(ctx context.Context, id string) error {
	return as.tx.exec(ctx, `UPDATE payment_account SET sealed = NULL, doc = CASE WHEN handle = '' THEN '{}' ELSE doc END
		WHERE id = ? AND retired_at IS NOT NULL`, id)
}
