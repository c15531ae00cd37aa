package attention

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"stoa/node/hall"
	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// own returns the person that the caller acts as. In a writing transaction its row is locked.
func own(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	p, err := hall.Own(ctx, tx, c, in)
	if err == nil && p.Draft.Kind != protocol.Person {
		return nil, protocol.Errorf(protocol.Forbidden, "@%s is not a person; only persons have attention boards", p.Draft.Handle)
	}
	return p, err
}

// payee returns the profile whose payment account the caller reads or writes: of a person for bids, of a business for orders. In a writing
// transaction the row of its till, if there is one, is locked before its own, as orders do.
func payee(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	if handle, err := c.ActsAs(in.Handle); err == nil {
		if _, err := tx.Tills().ByHandle(ctx, handle); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
	}
	return hall.Own(ctx, tx, c, in)
}

// ownBoard returns the stored board of a profile; of one that has none, a closed one with the
// defaults.
func ownBoard(ctx context.Context, tx *storage.Tx, handle string) (*storage.AttentionBoard, error) {
	b, err := tx.AttentionBoards().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		terms, _ := protocol.AttentionDraft{}.Terms()
		return &storage.AttentionBoard{Handle: handle, Terms: terms}, nil
	}
	return b, err
}

// GetOwn returns the board of a profile with its settings.
func (a *Attention) GetOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.OwnAttentionBoard, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnAttentionBoard{}, err
	}
	b, err := ownBoard(ctx, tx, p.Draft.Handle)
	if err != nil {
		return protocol.OwnAttentionBoard{}, err
	}
	return a.written(ctx, tx, p, b)
}

func (a *Attention) written(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, b *storage.AttentionBoard) (protocol.OwnAttentionBoard, error) {
	board, err := a.board(ctx, tx, p, b)
	out := protocol.OwnAttentionBoard{AttentionBoard: board, Open: b.Open, ClaimHours: b.Terms.ClaimHours, Wanted: b.Open && b.Terms.Accepting}
	if !b.UpdatedAt.IsZero() {
		out.UpdatedAt = &b.UpdatedAt
	}
	return out, err
}

// PutOwn opens a board, or replaces its settings.
func (a *Attention) PutOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AttentionDraft) (protocol.OwnAttentionBoard, error) {
	p, err := own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnAttentionBoard{}, err
	}
	b, err := ownBoard(ctx, tx, p.Draft.Handle)
	if err != nil {
		return protocol.OwnAttentionBoard{}, err
	}
	terms, _ := in.Terms() // the hall has refused faults
	if b.ID != "" {
		if err := tx.Bids().RenumberSlots(ctx, b, terms.Slots); errors.Is(err, storage.ErrExists) {
			return protocol.OwnAttentionBoard{}, protocol.Errorf(protocol.Conflict,
				"more than %d slots are in use; set slots higher, or wait until bids end", terms.Slots)
		} else if err != nil {
			return protocol.OwnAttentionBoard{}, err
		}
	}
	b.Terms, b.Open = terms, true
	if b.Account == "" {
		if b.Account, err = currentAccount(ctx, tx, b.Handle); err != nil {
			return protocol.OwnAttentionBoard{}, err
		}
	}
	if err := tx.AttentionBoards().Put(ctx, b); err != nil {
		return protocol.OwnAttentionBoard{}, err
	}
	p.Attention = true
	return a.written(ctx, tx, p, b)
}

// currentAccount returns the id of the payment account in use, "" for none.
func currentAccount(ctx context.Context, tx *storage.Tx, handle string) (string, error) {
	all, err := tx.PaymentAccounts().OfProfile(ctx, handle)
	for _, one := range all {
		if one.RetiredAt == nil {
			return one.ID, err
		}
	}
	return "", err
}

// Providers are the payment providers that the node offers.
func (a *Attention) Providers() []protocol.PayName {
	all := []protocol.PayName{protocol.PayUPI, protocol.PayRazorpay}
	if a.Sandbox {
		all = append(all, protocol.PaySandbox)
	}
	return all
}

// GetAccount returns the payment account of a profile, without secrets.
func (a *Attention) GetAccount(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.PaymentAccount, error) {
	p, err := payee(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.PaymentAccount{}, err
	}
	all, err := tx.PaymentAccounts().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return protocol.PaymentAccount{}, err
	}
	for i := range all {
		if all[i].RetiredAt == nil {
			return a.account(&all[i]), nil
		}
	}
	return protocol.PaymentAccount{Handle: p.Draft.Handle, Providers: a.Providers(), Untrusted: true}, nil
}

func (a *Attention) account(s *storage.PaymentAccount) protocol.PaymentAccount {
	out := protocol.PaymentAccount{
		Handle: s.Handle, Provider: &s.Provider, VPA: s.VPA, PayeeName: s.PayeeName, KeyID: s.KeyID, HasKeySecret: s.HasKeySecret,
		WebhookSecrets: s.WebhookSecrets, LegalName: s.LegalName, Address: s.Address, GSTIN: s.GSTIN, GSTPercent: s.GSTPercent,
		Providers: a.Providers(), Untrusted: true,
	}
	if s.Provider == protocol.PayRazorpay {
		out.WebhookURL = new(a.hookURL(s))
	}
	return out
}

// hookURL is where the provider of an account posts its events.
func (a *Attention) hookURL(s *storage.PaymentAccount) string {
	return a.Base + "/hooks/pay/" + string(s.Provider) + "/" + s.Hook
}

// PutAccount sets where bids are paid to. A change of the provider, or of what payments are made
// to, makes a new account; the former one stays for the bids that were made with it.
func (a *Attention) PutAccount(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PaymentDraft) (protocol.PaymentAccount, error) {
	p, err := payee(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.PaymentAccount{}, err
	}
	if !slices.Contains(a.Providers(), in.Provider) {
		return protocol.PaymentAccount{}, protocol.Invalid(protocol.Fault{Pointer: "/provider", Code: "not-allowed", Detail: "this node does not offer it"})
	}
	handle := p.Draft.Handle
	all, err := tx.PaymentAccounts().OfProfile(ctx, handle)
	if err != nil {
		return protocol.PaymentAccount{}, err
	}
	var account *storage.PaymentAccount
	for i := range all {
		same := all[i].Provider == in.Provider && all[i].VPA == in.VPA && all[i].KeyID == in.KeyID
		if same && account == nil {
			account = &all[i]
		} else if all[i].RetiredAt == nil {
			if err := a.retire(ctx, tx, &all[i]); err != nil {
				return protocol.PaymentAccount{}, err
			}
		}
	}
	if account == nil {
		account = &storage.PaymentAccount{
			ID: protocol.NewID(protocol.PayeeID, tx.Now), Handle: handle, Provider: in.Provider, Hook: rand.Text(), CreatedAt: tx.Now,
		}
	}
	if err := a.fill(account, in); err != nil {
		return protocol.PaymentAccount{}, err
	}
	account.RetiredAt = nil
	if err := tx.PaymentAccounts().Put(ctx, account); err != nil {
		return protocol.PaymentAccount{}, err
	}
	return a.account(account), setAccount(ctx, tx, handle, account.ID)
}

// fill writes what the owner sent into an account. Secrets that were left out stay.
func (a *Attention) fill(account *storage.PaymentAccount, in protocol.PaymentDraft) error {
	kept, err := a.SecretsOf(account)
	if err != nil {
		return err
	}
	if in.KeySecret != "" {
		kept.KeySecret = in.KeySecret
	}
	if len(in.WebhookSecrets) > 0 {
		kept.Webhooks = in.WebhookSecrets
	}
	if in.Provider == protocol.PaySandbox && len(kept.Webhooks) == 0 {
		kept.Webhooks = []string{rand.Text() + rand.Text()} // signs what the node posts to itself
	}
	if in.Provider == protocol.PayRazorpay {
		var faults []protocol.Fault
		if kept.KeySecret == "" {
			faults = append(faults, protocol.Fault{Pointer: "/keySecret", Code: "required", Detail: "is required: none is stored for this key"})
		}
		if len(kept.Webhooks) == 0 {
			faults = append(faults, protocol.Fault{Pointer: "/webhookSecrets", Code: "required", Detail: "at least one is required: none is stored for this key"})
		}
		if len(faults) > 0 {
			return protocol.Invalid(faults...)
		}
	}
	opened := money.Account{
		Provider: in.Provider, VPA: in.VPA, Name: firstOf(in.PayeeName, in.LegalName, account.Handle), KeyID: in.KeyID,
		KeySecret: kept.KeySecret, WebhookSecrets: kept.Webhooks,
	}
	provider, err := a.Pay(opened)
	if err != nil { // its form only; the provider is not asked
		return protocol.Invalid(protocol.Fault{Pointer: "", Code: "payment-account", Detail: err.Error()})
	}
	account.PaymentAccountDoc = storage.PaymentAccountDoc{
		VPA: in.VPA, PayeeName: in.PayeeName, KeyID: in.KeyID, HasKeySecret: kept.KeySecret != "", WebhookSecrets: len(kept.Webhooks),
		LegalName: in.LegalName, Address: in.Address, GSTIN: in.GSTIN, GSTPercent: string(in.GSTPercent),
		Test: provider.Caps().Test,
	}
	return a.SealSecrets(account, kept)
}

// retire takes an account out of use. Its secrets stay as long as a bid may be refunded by it.
func (a *Attention) retire(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount) error {
	account.RetiredAt = new(tx.Now)
	owes, err := tx.PaymentAccounts().Owes(ctx, account.ID)
	if err != nil {
		return err
	}
	if !owes {
		account.Sealed, account.HasKeySecret, account.WebhookSecrets = nil, false, 0
	}
	return tx.PaymentAccounts().Put(ctx, account)
}

// setAccount makes an account that of the profile's board, if there is one.
func setAccount(ctx context.Context, tx *storage.Tx, handle, account string) error {
	b, err := tx.AttentionBoards().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil || b.Account == account {
		return err
	}
	b.Account = account
	return tx.AttentionBoards().Put(ctx, b)
}

// DeleteAccount takes the payment account out of use: the board takes no more bids.
func (a *Attention) DeleteAccount(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.None, error) {
	p, err := payee(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	all, err := tx.PaymentAccounts().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return protocol.None{}, err
	}
	for i := range all {
		if all[i].RetiredAt == nil {
			if err := a.retire(ctx, tx, &all[i]); err != nil {
				return protocol.None{}, err
			}
		}
	}
	return protocol.None{}, setAccount(ctx, tx, p.Draft.Handle, "")
}
