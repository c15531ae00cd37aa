package web

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

const (
	accessPath = "/account/access"
	keysPath   = "/account/keys"
	tokensPath = "/account/tokens"
)

// An accessKind is a section of the page of what acts for an account.
type accessKind struct {
	kind                  protocol.CredentialKind
	title, about, removal string // removal says what its removal ends; "" with what cannot be removed
	none                  string // said when there are none
	adds, add             string // the page where one is added, "" for none, and the text of the link to it
}

var accessKinds = []accessKind{
	{protocol.HeldPasskey, english("Passkeys"), english("They sign in to your account."), english("It signs in no more. Have another way to sign in first."),
		english("No passkey yet."), securityPath, english("Add a passkey")},
	{protocol.HeldSession, english("Signed in"), english("Browsers that are signed in to your account."), english("That browser is signed out."), "", "", ""},
	{protocol.HeldDevice, english("Notified devices"), english("Browsers that are sent your notices."), english("It is sent no more notices."),
		english("No device yet."), noticesPage, english("Notify a device")},
	{protocol.HeldToken, english("Tokens"), english("Programs of yours that act for you."), english("The program that has it can do nothing for you any more."),
		english("No token yet."), tokensPath, english("Make a token")},
	{protocol.HeldIdentity, english("Identities on a blockchain"), english("Who owns one speaks for the profile."),
		english("The profile loses it, with every key that depends on it. On the chain nothing changes."),
		english("No identity yet."), keysPath, english("Connect an identity")},
	{protocol.HeldWallet, english("Wallets"), english("Ethereum accounts that sign in, or that own or are the agent wallet of an identity."),
		english("It signs in no more. Have another way to sign in first."), english("No wallet."), "", ""},
	{protocol.HeldKey, english("Keys"), english("They sign as a profile of yours."), english("It never comes back. What it signed before stays valid."),
		english("No key yet."), keysPath, english("Make a key")},
	{protocol.HeldDelegated, english("Delegated keys"), english("A wallet of an identity lets them sign for a time."),
		english("It signs nothing any more, until a wallet names it again."), english("No delegated key."), "", ""},
}

// of returns the credentials of the section.
func (k accessKind) of(all []protocol.HeldCredential) (list []protocol.HeldCredential) {
	for _, h := range all {
		if h.Kind == k.kind {
			list = append(list, h)
		}
	}
	return list
}

// credentialName is what a credential is called, by its owner or by itself.
func credentialName(ctx context.Context, h protocol.HeldCredential) string {
	switch h.Kind {
	case protocol.HeldSession, protocol.HeldDevice:
		return cmp.Or(h.Name, browserName(ctx, h.Detail))
	}
	return cmp.Or(h.Name, h.Detail)
}

// credentialDetail is what else there is to tell it by, "" for nothing.
func credentialDetail(ctx context.Context, h protocol.HeldCredential) string {
	switch {
	case h.Kind == protocol.HeldToken:
		var scopes []protocol.Scope
		for _, s := range strings.Fields(h.Detail) {
			scopes = append(scopes, protocol.Scope(s))
		}
		return scopeList(ctx, scopes)
	case h.Name == "":
		return ""
	case h.Kind == protocol.HeldSession || h.Kind == protocol.HeldDevice:
		return browserName(ctx, h.Detail)
	}
	return h.Detail
}

// credentialTimes say when a credential was made, last used, and when it ends, as far as that is known.
func credentialTimes(ctx context.Context, h protocol.HeldCredential) string {
	var parts []string
	add := func(key string, at *time.Time) {
		if at != nil {
			parts = append(parts, tr(ctx, key, stamp(ctx, *at)))
		}
	}
	add(english("since %s"), h.CreatedAt)
	add(english("last used %s"), h.LastUsedAt)
	add(english("ends %s"), h.EndsAt)
	return strings.Join(parts, " · ")
}

// renameForm gives a credential a name.
func renameForm(f *sent, h protocol.HeldCredential) templ.Component {
	at := formID("rename_credential", string(h.Kind), h.ID)
	return posted("form", at, "/account", hidden("do", "rename_credential", "kind", string(h.Kind), "id", h.ID), once(),
		ask(protocol.RenameCredential.Operation, f, at, map[string][]string{"name": {h.Name}}, line("name", "A name by which you recognise it")), sends("Save"))
}

// removeForm removes a credential.
func removeForm(ctx context.Context, h protocol.HeldCredential) templ.Component {
	return posted("", formID("remove_credential", string(h.Kind), h.ID), "/account",
		hidden("do", "remove_credential", "kind", string(h.Kind), "id", h.ID), once(), quietly(tr(ctx, "Remove it")))
}

// credential returns the refused form if it is that of a credential, otherwise nil.
func (a *account) credential(do string, h protocol.HeldCredential) *sent {
	if f := a.sent(do, "", h.ID); f != nil && f.values.Get("kind") == string(h.Kind) {
		return f
	}
	return nil
}
