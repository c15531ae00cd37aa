package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/protocol"
)

type adminAccountCmd struct {
	Create  accountCreateCmd  `cmd:"" help:"Make an account and print a one-time sign-in link."`
	List    listing           `cmd:"" op:"list_accounts" help:"List accounts and their profiles."`
	Link    accountLink       `cmd:"" op:"link_profile" help:"Assign a profile to an account; a previous owner loses it."`
	Unlink  byHandle          `cmd:"" op:"unlink_profile" help:"Remove a profile from its account, with the tokens for it."`
	SignIn  accountSignInCmd  `cmd:"" name:"sign-in" help:"Print another one-time sign-in link."`
	SignOut accountSignOutCmd `cmd:"" name:"sign-out" help:"End every session of an account."`
	First   firstOperatorCmd  `cmd:"" name:"first-operator" help:"Print the link that makes the first operator, by passkey. It ends the one before."`
	Role    accountRole       `cmd:"" op:"set_role" help:"Make an account an owner's or an operator's."`
	Mail    accountMail       `cmd:"" op:"set_account_mail" help:"Set the address that sign-in links go to; the former address is notified."`
	Close   byAccount         `cmd:"" op:"close_account_for" help:"Delete an account with its sessions and tokens; its profiles stay."`
}

type accountCreateCmd struct {
	Name    string   `arg:"" help:"Name of the person."`
	Role    string   `default:"owner" enum:"owner,operator" help:"owner or operator."`
	Mail    string   `help:"Mail address that you know to be theirs; sign-in links can be sent there."`
	Profile []string `placeholder:"HANDLE" help:"A profile to assign to the account. Repeatable."`
}

func (c *accountCreateCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.OpenAccount, protocol.NewAccount{Name: c.Name, Role: protocol.Role(c.Role), Mail: c.Mail, Handles: c.Profile},
		func(made protocol.OpenedAccount) error {
			fmt.Fprintln(w.stderr, made.Account.ID)
			return all.printLink(w, made.Account.ID, made.SignIn.URL)
		})
}

func (c *adminCmd) printLink(w *world, account, link string) error {
	fmt.Fprintln(w.stderr, "the link can be used once, within 30 minutes")
	return c.table(w, map[string]string{"account": account, "link": link}, func(t io.Writer) { fmt.Fprintln(t, link) })
}

type byAccount struct {
	act
	Account string `arg:"" json:"account" help:"Id of the account, or one of its profiles."`
}

type accountLink struct {
	act
	Account string `arg:"" json:"account" help:"Id of the account."`
	Handle  string `arg:"" json:"handle" help:"The profile."`
}

type accountRole struct {
	byAccount
	Role string `arg:"" json:"role" enum:"owner,operator" help:"owner or operator."`
}

type accountMail struct {
	byAccount
	Mail string `arg:"" json:"mail,omitempty" optional:"" help:"Address that you know to be theirs. Without it the account's address is removed."`
}

type accountSignInCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
}

func (c *accountSignInCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.MakeSignInLink, protocol.AccountRef{Account: c.Account}, func(link protocol.SignInLink) error {
		return all.printLink(w, c.Account, link.URL)
	})
}

type firstOperatorCmd struct{}

func (c *firstOperatorCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.MakeOperatorLink, protocol.OperatorLinkOrder{}, func(link protocol.SignInLink) error {
		fmt.Fprintln(w.stderr, "the link can be used once, within 24 hours")
		return all.line(w, "link", link.URL)
	})
}

type accountSignOutCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
	Forget  bool   `help:"Delete its passkeys and recovery codes too, for an owner who lost a device."`
}

func (c *accountSignOutCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: c.Account}, Forget: c.Forget},
		func(out protocol.SignedOut) error {
			fmt.Fprintf(w.stderr, "ended: %d; API tokens stay, see stoa admin token list\n", out.Ended)
			return nil
		})
}

type adminTokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token. It is shown once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke byID           `cmd:"" op:"revoke_token" help:"Revoke a token."`
}

type tokenCreateCmd struct {
	For   string        `arg:"" name:"for" help:"The profile that it is for, or the id of an account for all its profiles."`
	Label string        `default:"token" help:"Name of the token."`
	TTL   time.Duration `name:"ttl" help:"Lifetime. Default: it does not expire."`
	Scope []string      `enum:"post,profile,keys,inbox,notify,archive,attention,meetings,orders,account,operator" help:"What it allows: post, profile, keys, inbox, notify, archive, attention, meetings, orders; for an account also account, and for an operator's account operator. Default: everything that concerns a profile."`
}

func (c *tokenCreateCmd) Run(w *world, all *adminCmd) error {
	in := protocol.TokenGrant{NewToken: protocol.NewToken{Name: c.Label, Scopes: protocol.OwnerScopes}, Lifetime: c.TTL}
	if len(c.Scope) > 0 {
		in.Scopes = nil
	}
	for _, s := range c.Scope {
		in.Scopes = append(in.Scopes, protocol.Scope(s))
	}
	if in.Handle = c.For; protocol.IsID(protocol.AccountID, c.For) {
		in.Handle, in.Account = "", c.For
	}
	return do(w, all, protocol.GrantToken, in, func(made protocol.MadeToken) error {
		fmt.Fprintf(w.stderr, "%s: keep it, it is not shown again\n", made.Token.ID)
		return all.table(w, map[string]string{"id": made.Token.ID, "token": made.Secret}, func(t io.Writer) { fmt.Fprintln(t, made.Secret) })
	})
}

type tokenListCmd struct {
	For string `arg:"" name:"for" help:"The profile, or the id of an account."`
}

func (c *tokenListCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.TokensOf, protocol.AccountRef{Account: c.For}, func(tokens protocol.Page[protocol.Token]) error {
		var lines [][]string
		for _, k := range tokens.Items {
			state := "active"
			switch {
			case k.RevokedAt != nil:
				state = "revoked"
			case k.ExpiresAt != nil && k.ExpiresAt.Before(time.Now()):
				state = "run out"
			}
			scopes := make([]string, len(k.Scopes))
			for i, s := range k.Scopes {
				scopes[i] = string(s)
			}
			lines = append(lines, []string{k.ID, k.Name, k.CreatedAt.Format(time.RFC3339), state, strings.Join(scopes, ",")})
		}
		return all.rows(w, "id label createdAt state scopes", lines)
	})
}
