// Package account is the room of owners: accounts and how owners sign in to them
// (contract §2, §4), and what an owner does with a profile. The gate has decided to
// which profiles the caller has access, and what its token allows; the room reads
// it from the caller.
package account

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/node/out/push"
	"stoa/protocol"
	"stoa/protocol/sorting"
	"stoa/storage"
)

// A LinkFor returns the link by which the reader of a notice to an address, of mail or of a webhook, decides
// what the subject waits for from the owner of a profile; nil when it waits for nothing.
type LinkFor func(ctx context.Context, tx *storage.Tx, subject, handle, to string) (*protocol.NoticeLink, error)

// Accounts are the accounts of one node.
type Accounts struct {
	Base string // public address of the node, without a slash at the end
	Name string // what the operator calls the node
	DB   *storage.DB
	// Words has the texts of letters; see [hall.House].
	Words func(language string) hall.Words
	// Mail sends letters; nil when the node sends none.
	Mail Mailer
	// Webhook sends notices to addresses that owners chose.
	Webhook Webhook
	Private bool // addresses of webhooks may be on loopback: development
	// Links make the links of notices, by the kind of the id that a notice is about.
	Links map[string]LinkFor
	// Opens decide who is told about one thing by Web Push, by the kinds of ids. Push sends it.
	Opens map[string]Opens
	Push  *push.Sender
	SignInWays
	// UndoLink returns the address that undoes the deletion of a profile or account, "" when none does.
	UndoLink func(ctx context.Context, tx *storage.Tx, subject string) (string, error)
	// Return undoes that an account is being closed, when its owner signs in.
	Return func(ctx context.Context, tx *storage.Tx, account string) error
	// Seal encrypts the private half of a key that the node keeps for a profile.
	Seal func(handle string, p key.Pair) ([]byte, error)

	Joining Joining
}

// SignInWays are what passkeys and Ethereum accounts need.
type SignInWays struct {
	// Site is what passkeys are for; nil where the node's address has no domain name.
	Site       *passkey.Site
	Challenges session.Challenger
	// Chain tells who owns a chain identity; nil when the node reads no chain. Chains are the numbers of those it reads.
	Chain  Chain
	Chains []uint64
	Agents *identity.SignIn // of agents, which have no account here
}

// Session returns who is signed in.
func (a *Accounts) Session(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.SessionState, error) {
	s := protocol.SessionState{Handles: []string{}}
	if c.Account == "" {
		return s, nil
	}
	who, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil {
		return s, err
	}
	s.SignedIn, s.Name = true, &who.Name
	s.Handles = append(s.Handles, c.Handles...)
	return s, nil
}

// Get returns the caller's account.
func (a *Accounts) Get(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.Account, error) {
	who, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil {
		return protocol.Account{}, err
	}
	out := protocol.Account{
		ID: who.ID, Name: who.Name, Role: who.Role, CreatedAt: who.CreatedAt, Language: cmp.Or(who.Language, "en"),
		Handles: append([]string{}, c.Handles...), Scopes: append([]protocol.Scope{}, c.Scopes...),
	}
	if c.Scopes == nil {
		out.Scopes = scopesOf(who.Role)
	}
	out.Profiles = make([]protocol.HeldProfile, 0, len(out.Handles))
	for _, handle := range out.Handles {
		p, err := tx.Profiles().Own(ctx, handle)
		if err != nil {
			return protocol.Account{}, err
		}
		n, err := tx.Threads().CountNew(ctx, handle, mostNew)
		if err != nil {
			return protocol.Account{}, err
		}
		out.Profiles = append(out.Profiles, protocol.HeldProfile{Handle: handle, Name: p.Draft.Name, Kind: p.Draft.Kind, New: n})
	}
	out.Leaving, err = tx.Leavings().Departures(ctx, who.ID, out.Handles)
	return out, err
}

// WhatWaits returns what waits for the owner.
func (a *Accounts) WhatWaits(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.OwnerWaits, error) {
	found, err := tx.Profiles().Waits(ctx, c.Handles)
	sorting.Stable(found, func(x, y protocol.Wait) int { // what has a deadline first
		switch {
		case x.Until != nil && y.Until != nil:
			return x.Until.Compare(*y.Until)
		case x.Until != nil:
			return -1
		case y.Until != nil:
			return 1
		}
		return slices.Index(protocol.WaitKinds, x.What) - slices.Index(protocol.WaitKinds, y.What)
	})
	out := protocol.OwnerWaits{Items: append([]protocol.Wait{}, found...)}
	for _, w := range found {
		out.Count += w.Count
	}
	return out, err
}

// mostNew bounds the count of threads with new messages.
const mostNew = 100

// scopesOf is everything an account of a role may do.
func scopesOf(r protocol.Role) []protocol.Scope {
	all := append([]protocol.Scope{}, protocol.OwnerScopes...)
	all = append(all, protocol.ScopeAccount)
	if r == protocol.RoleOperator {
		all = append(all, protocol.ScopeOperator)
	}
	return all
}

// Put changes the owner's settings of the account.
func (a *Accounts) Put(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountDraft) (protocol.Account, error) {
	if err := tx.Accounts().Rename(ctx, c.Account, in.Name); err != nil {
		return protocol.Account{}, err
	}
	if in.Language != "" {
		if err := tx.Accounts().SetLanguage(ctx, c.Account, in.Language); err != nil {
			return protocol.Account{}, err
		}
	}
	return a.Get(ctx, tx, c, protocol.None{})
}

// Tokens lists the API tokens of the account.
func (a *Accounts) Tokens(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Paging) (protocol.Page[protocol.Token], error) {
	found, err := tx.Tokens().OfAccount(ctx, c.Account, in.Size(), in.After)
	page := protocol.Page[protocol.Token]{Items: make([]protocol.Token, 0, len(found.Items)), Next: found.Next}
	for _, t := range found.Items {
		page.Items = append(page.Items, token(t, c))
	}
	return page, err
}

func token(t storage.Token, c protocol.Caller) protocol.Token {
	out := protocol.Token{
		ID: t.ID, Name: t.Name, Scopes: make([]protocol.Scope, len(t.Scopes)),
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt, LastUsedAt: t.LastUsedAt,
		Current: t.ID == c.Secret, Client: t.Client,
	}
	for i, s := range t.Scopes {
		out.Scopes[i] = protocol.Scope(s)
	}
	if t.Handle != "" {
		out.Handle = &t.Handle
	}
	return out
}

// CreateToken makes a token with at most the scopes and lifetime of the caller: a
// token must not be a way to a wider one.
func (a *Accounts) CreateToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewToken) (protocol.MadeToken, error) {
	who, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil {
		return protocol.MadeToken{}, err
	}
	if in.Handle != "" {
		if _, err := c.ActsAs(in.Handle); err != nil {
			return protocol.MadeToken{}, err
		}
	}
	if slices.Contains(in.Scopes, protocol.ScopeAccount) && protocol.IsID(protocol.SessionID, c.Secret) { // such a token lasts longer than the session
		if _, err := a.recent(ctx, tx, c); err != nil {
			return protocol.MadeToken{}, err
		}
	}
	expires, err := a.expiry(ctx, tx, c, in.ExpiresInDays)
	if err != nil {
		return protocol.MadeToken{}, err
	}
	return a.makeToken(ctx, tx, c, who, in, expires)
}

// expiry is when a new token expires, nil for never. A token made by a token does
// not outlive it.
func (a *Accounts) expiry(ctx context.Context, tx *storage.Tx, c protocol.Caller, days int) (*time.Time, error) {
	var expires *time.Time
	if days > 0 {
		expires = new(tx.Now.Add(time.Duration(days) * 24 * time.Hour))
	}
	if !protocol.IsID(protocol.TokenID, c.Secret) {
		return expires, nil
	}
	parent, err := tx.Tokens().ByID(ctx, c.Secret)
	if err != nil {
		return nil, err
	}
	if parent.ExpiresAt != nil && (expires == nil || expires.After(*parent.ExpiresAt)) {
		expires = parent.ExpiresAt
	}
	return expires, nil
}

// makeToken stores a token of an account. The scope operator takes an operator's account.
func (a *Accounts) makeToken(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, who storage.Account, in protocol.NewToken, expires *time.Time,
) (protocol.MadeToken, error) {
	for _, s := range in.Scopes {
		if !c.May(s) || s == protocol.ScopeOperator && who.Role != protocol.RoleOperator {
			return protocol.MadeToken{}, protocol.Errorf(protocol.Forbidden, "you cannot give the scope %s, which you do not have here", s)
		}
	}
	if err := roomForToken(ctx, tx, who.ID); err != nil {
		return protocol.MadeToken{}, err
	}
	secret, hash := session.New(session.Token)
	t := storage.Token{
		ID: protocol.NewID(protocol.TokenID, tx.Now), Hash: hash, Account: who.ID, Handle: in.Handle, Name: in.Name,
		Scopes: make([]string, len(in.Scopes)), CreatedAt: tx.Now, ExpiresAt: expires,
	}
	for i, s := range in.Scopes {
		t.Scopes[i] = string(s)
	}
	if err := tx.Tokens().Insert(ctx, t); err != nil {
		return protocol.MadeToken{}, err
	}
	return protocol.MadeToken{Secret: secret, Token: token(t, c)}, tx.Audit(ctx, c.Actor(), "token create", t.ID, in.Name)
}

// roomForToken refuses an account that has as many tokens as it can.
func roomForToken(ctx context.Context, tx *storage.Tx, account string) error {
	n, err := tx.Tokens().Count(ctx, account)
	if err == nil && n >= protocol.MaxTokens {
		err = protocol.Errorf(protocol.Conflict, "the account has %d tokens; revoke one first", n)
	}
	return err
}

// RevokeToken revokes a token of the account; the operator can revoke any.
func (a *Accounts) RevokeToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.TokenRef) (protocol.None, error) {
	t, err := tx.Tokens().ByID(ctx, in.ID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && t.Account != c.Account && c.Standing != protocol.Operator {
		return protocol.None{}, protocol.Errorf(protocol.NotFound, "the account has no token with that id")
	}
	if err != nil || t.RevokedAt != nil {
		return protocol.None{}, err
	}
	if err := tx.Tokens().Revoke(ctx, in.ID); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "token revoke", in.ID, t.Name)
}

// Sessions lists where the account is signed in.
func (a *Accounts) Sessions(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Paging) (protocol.Page[protocol.SignedIn], error) {
	found, err := tx.Sessions().List(ctx, c.Account, in.Size(), in.After)
	page := protocol.Page[protocol.SignedIn]{Items: make([]protocol.SignedIn, 0, len(found.Items)), Next: found.Next}
	for _, s := range found.Items {
		page.Items = append(page.Items, protocol.SignedIn{
			ID: s.ID, Program: s.Program, CreatedAt: s.CreatedAt, LastUsedAt: s.LastUsedAt, ExpiresAt: s.ExpiresAt, Current: s.ID == c.Secret,
		})
	}
	return page, err
}

// EndSession signs one browser out.
func (a *Accounts) EndSession(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.SessionRef) (protocol.None, error) {
	err := tx.Sessions().End(ctx, c.Account, in.ID)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "the account has no session with that id"))
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "session end", in.ID, "")
}
