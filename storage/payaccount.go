package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A PaymentAccount is where the bids on the attention board of a profile are paid to. Sealed holds
// the provider's secrets, encrypted under the node's master key.
type PaymentAccount struct {
	ID, Handle string
	Provider   protocol.PayName
	Hook       string // last part of the address of the provider's webhook
	PaymentAccountDoc
	Sealed               []byte // nil for none
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

const paymentAccountColumns = `id, handle, provider, hook, doc, sealed, created_at, updated_at, retired_at`

// Payment accounts by their keys.
const (
	paymentAccountByID   = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE id = ?`
	paymentAccountByHook = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE hook = ? AND provider = ?`
	paymentAccountsOf    = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE handle = ? ORDER BY id DESC LIMIT 100`
)

func scanPaymentAccount(s scanner) (a PaymentAccount, err error) {
	var doc []byte
	var created, updated int64
	var retired *int64
	if err = s.Scan(&a.ID, &a.Handle, &a.Provider, &a.Hook, &doc, &a.Sealed, &created, &updated, &retired); err != nil {
		return a, err
	}
	a.CreatedAt, a.UpdatedAt, a.RetiredAt = moment(created), moment(updated), momentPtr(retired)
	if err = json.Unmarshal(doc, &a.PaymentAccountDoc); err != nil {
		return a, fmt.Errorf("payment account %s: %w", a.ID, err)
	}
	return a, nil
}

// PaymentAccounts reads and writes the accounts by which bids are paid.
type PaymentAccounts struct{ tx *Tx }

func (tx *Tx) PaymentAccounts() PaymentAccounts { return PaymentAccounts{tx} }

// ByID returns a payment account, also a retired one; ErrNotFound when there is none.
func (as PaymentAccounts) ByID(ctx context.Context, id string) (*PaymentAccount, error) {
	a, err := scanPaymentAccount(as.tx.row(ctx, paymentAccountByID, id))
	return &a, err
}

// ByHook returns the account whose provider posts its events to that address.
func (as PaymentAccounts) ByHook(ctx context.Context, provider, hook string) (*PaymentAccount, error) {
	a, err := scanPaymentAccount(as.tx.row(ctx, paymentAccountByHook, hook, provider))
	return &a, err
}

// OfProfile returns the accounts of a profile, the newest first, retired ones included.
func (as PaymentAccounts) OfProfile(ctx context.Context, handle string) ([]PaymentAccount, error) {
	rows, err := as.tx.query(ctx, paymentAccountsOf, handle)
	return collect(rows, err, scanPaymentAccount)
}

// Put stores an account. A new one gets an id.
func (as PaymentAccounts) Put(ctx context.Context, a *PaymentAccount) error {
	if a.ID == "" {
		a.ID, a.CreatedAt = protocol.NewID(protocol.PayeeID, as.tx.Now), as.tx.Now
	}
	doc, err := json.Marshal(a.PaymentAccountDoc)
	if err != nil {
		return fmt.Errorf("encode payment account: %w", err)
	}
	a.UpdatedAt = as.tx.Now
	_, err = as.tx.write(ctx, `INSERT INTO payment_account (`+paymentAccountColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET doc = excluded.doc, sealed = excluded.sealed, updated_at = excluded.updated_at, retired_at = excluded.retired_at`,
		a.ID, a.Handle, string(a.Provider), a.Hook, string(doc), blob(a.Sealed), millis(a.CreatedAt), millis(a.UpdatedAt), millisPtr(a.RetiredAt))
	return err
}

// paymentAccountOwes asks for bids that are not over, for those for which a bank may still answer, and
// for refunds that are not made.
const paymentAccountOwes = `SELECT 1 FROM bid WHERE account = ? AND state IN ('held', 'claimed', 'live', 'refund_due', 'refunding', 'refund_failed')
	UNION ALL SELECT 1 FROM bid WHERE account = ? AND state IN ('lapsed', 'withdrawn', 'unconfirmed') AND moved_at > ?
	UNION ALL SELECT 1 FROM refund r JOIN payment p ON p.id = r.payment WHERE r.state <> 'done' AND p.account = ?
		AND r.board IN (SELECT b.id FROM attention_board b JOIN payment_account a ON a.handle = b.handle WHERE a.id = ?) LIMIT 1`

// Owes reports whether a bid may still be paid or refunded by an account.
func (as PaymentAccounts) Owes(ctx context.Context, id string) (bool, error) {
	var one int
	err := as.tx.row(ctx, paymentAccountOwes, id, id, millis(as.tx.Now.Add(-protocol.LateFor)), id, id).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
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
		if err == nil && !owes {
			err = as.DropSecrets(ctx, a.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DropSecrets deletes the secrets of a retired account.
func (as PaymentAccounts) DropSecrets(ctx context.Context, id string) error {
	_, err := as.tx.write(ctx, `UPDATE payment_account SET sealed = NULL WHERE id = ? AND retired_at IS NOT NULL`, id)
	return err
}
