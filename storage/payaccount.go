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
}

const paymentAccountColumns = `id, handle, provider, hook, doc, sealed, created_at, updated_at, retired_at`

// Payment accounts by their keys.
const (
	paymentAccountByID   = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE id = ?`
	paymentAccountByHook = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE hook = ? AND provider = ?`
	paymentAccountsOf    = `SELECT ` + paymentAccountColumns + ` FROM payment_account WHERE handle = ? ORDER BY id DESC LIMIT 100`
	paymentAccountOwes   = `SELECT 1 FROM bid WHERE account = ? AND state IN ('held', 'claimed', 'live', 'outbid', 'ended', 'removed', 'unanswered',
		'refund_due', 'refunding', 'refund_failed') LIMIT 1`
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

// PaymentAccountByID returns a payment account, also a retired one; ErrNotFound when there is none.
func (tx *Tx) PaymentAccountByID(ctx context.Context, id string) (*PaymentAccount, error) {
	a, err := scanPaymentAccount(tx.row(ctx, paymentAccountByID, id))
	return &a, err
}

// PaymentAccountByHook returns the account whose provider posts its events to that address.
func (tx *Tx) PaymentAccountByHook(ctx context.Context, provider, hook string) (*PaymentAccount, error) {
	a, err := scanPaymentAccount(tx.row(ctx, paymentAccountByHook, hook, provider))
	return &a, err
}

// PaymentAccounts returns the accounts of a profile, the newest first, retired ones included.
func (tx *Tx) PaymentAccounts(ctx context.Context, handle string) ([]PaymentAccount, error) {
	rows, err := tx.query(ctx, paymentAccountsOf, handle)
	return collect(rows, err, scanPaymentAccount)
}

// PutPaymentAccount stores an account. A new one gets an id.
func (tx *Tx) PutPaymentAccount(ctx context.Context, a *PaymentAccount) error {
	if a.ID == "" {
		a.ID, a.CreatedAt = protocol.NewID(protocol.PayeeID, tx.Now), tx.Now
	}
	doc, err := json.Marshal(a.PaymentAccountDoc)
	if err != nil {
		return fmt.Errorf("encode payment account: %w", err)
	}
	a.UpdatedAt = tx.Now
	_, err = tx.write(ctx, `INSERT INTO payment_account (`+paymentAccountColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET doc = excluded.doc, sealed = excluded.sealed, updated_at = excluded.updated_at, retired_at = excluded.retired_at`,
		a.ID, a.Handle, string(a.Provider), a.Hook, string(doc), blob(a.Sealed), millis(a.CreatedAt), millis(a.UpdatedAt), millisPtr(a.RetiredAt))
	return err
}

// PaymentAccountOwes reports whether a bid may still be paid or refunded by an account.
func (tx *Tx) PaymentAccountOwes(ctx context.Context, id string) (bool, error) {
	var one int
	err := tx.row(ctx, paymentAccountOwes, id).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// DropPaymentSecrets deletes the secrets of a retired account.
func (tx *Tx) DropPaymentSecrets(ctx context.Context, id string) error {
	_, err := tx.write(ctx, `UPDATE payment_account SET sealed = NULL WHERE id = ? AND retired_at IS NOT NULL`, id)
	return err
}
