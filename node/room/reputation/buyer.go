package reputation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// How buyers and shops are told: by names of accounts, profiles, chain identities, wallets, mailboxes and payment accounts. A buyer
// counts once for a shop in 30 days by any of the names that its order has; a shop is everything that is behind its profile.

func walletName(address string) string { return "wallet:" + strings.ToLower(address) }

func (r *Reputation) mailName(address string) string {
	return fmt.Sprintf("mail:%x", storage.MailboxOf(r.MailKey, address))
}

// addressOf is the address of an account, in CAIP-10 or alone.
func addressOf(account string) string { return account[strings.LastIndexByte(account, ':')+1:] }

// mostNames bounds what is looked for behind a party.
const mostNames = 300

// behind returns the names, and what the node knows to be the same party: the account of a profile, the profiles, mailbox and wallet of an
// account, the identity and the payment accounts of a profile.
func (r *Reputation) behind(ctx context.Context, tx *storage.Tx, names ...string) (map[string]bool, error) {
	all := map[string]bool{}
	for todo := slices.Clone(names); len(todo) > 0 && len(all) < mostNames; todo = todo[1:] {
		name := todo[0]
		if all[name] {
			continue
		}
		all[name] = true
		more, err := r.next(ctx, tx, name)
		if err = storage.IfMissing(err, nil); err != nil {
			return nil, err
		}
		todo = append(todo, more...)
	}
	return all, nil
}

func (r *Reputation) next(ctx context.Context, tx *storage.Tx, name string) (more []string, err error) {
	switch kind, rest, _ := strings.Cut(name, ":"); kind {
	case "agent": // of a caller by chain, with its owner
		if agent, owner, ok := strings.Cut(rest, "@"); ok {
			more = append(more, "agent:"+agent, walletName(owner))
		}
	case "wallet":
		var a storage.Account
		if a, err = tx.Accounts().ByWallet(ctx, rest); err == nil {
			more = append(more, "account:"+a.ID)
		}
	case "account":
		a, err := tx.Accounts().ByID(ctx, rest)
		if err != nil {
			return nil, err
		}
		if a.Wallet != "" {
			more = append(more, walletName(a.Wallet))
		}
		if a.Mail != "" {
			more = append(more, r.mailName(a.Mail))
		}
		handles, err := tx.Accounts().Handles(ctx, rest)
		for _, handle := range handles {
			more = append(more, "handle:"+handle)
		}
		return more, err
	case "handle":
		return r.profile(ctx, tx, rest)
	}
	return more, err
}

// profile returns what is behind a profile.
func (r *Reputation) profile(ctx context.Context, tx *storage.Tx, handle string) (more []string, err error) {
	a, err := tx.Accounts().OfProfile(ctx, handle)
	if err == nil {
		more = append(more, "account:"+a.ID)
	} else if !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return more, storage.IfMissing(err, nil)
	}
	if p.ERC8004 != "" {
		e, err := tx.Feedbacks().Agent(ctx, p.ERC8004)
		if err = storage.IfMissing(err, nil); err != nil {
			return nil, err
		}
		more = append(more, "agent:"+p.ERC8004)
		for _, address := range []string{e.Owner, e.Wallet} {
			if address != "" {
				more = append(more, walletName(address))
			}
		}
	}
	accounts, err := tx.PaymentAccounts().OfProfile(ctx, handle)
	for _, x := range accounts {
		if id := strings.ToLower(x.VPA + x.KeyID); id != "" {
			more = append(more, "payee:"+string(x.Provider)+" "+id)
		}
	}
	return more, err
}

// same reports whether a buyer is the shop.
func (r *Reputation) same(ctx context.Context, tx *storage.Tx, shop shop, buyers []string) (bool, error) {
	if len(buyers) == 0 {
		return false, nil
	}
	seller, err := r.behind(ctx, tx, "handle:"+shop.Handle)
	if err != nil {
		return false, err
	}
	buyer, err := r.behind(ctx, tx, buyers...)
	for name := range buyer {
		if seller[name] {
			return true, err
		}
	}
	return false, err
}

// may reports whether a caller is the buyer that a receipt names.
func (r *Reputation) may(ctx context.Context, tx *storage.Tx, c protocol.Caller, s storage.StoredReceipt) (bool, error) {
	if !c.Known() {
		return false, nil
	}
	names := c.KnownAs(c.ID())
	for _, address := range []string{c.Owner, c.Wallet} {
		if address != "" {
			names = append(names, walletName(address))
		}
	}
	caller, err := r.behind(ctx, tx, names...)
	for _, name := range append(slices.Clone(s.Buyers), walletName(addressOf(s.Client))) {
		if caller[name] {
			return true, err
		}
	}
	return false, err
}
