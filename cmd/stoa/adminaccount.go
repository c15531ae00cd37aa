package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/node"
	"stoa/protocol"
)

type adminAccountCmd struct {
	Create  accountCreateCmd  `cmd:"" help:"Make an account and print a one-time sign-in link."`
	List    accountListCmd    `cmd:"" help:"List accounts and their profiles."`
	Link    accountLinkCmd    `cmd:"" help:"Assign a profile to an account; a previous owner loses it."`
	Unlink  accountUnlinkCmd  `cmd:"" help:"Remove a profile from its account, with the tokens for it."`
	SignIn  accountSignInCmd  `cmd:"" name:"sign-in" help:"Print another one-time sign-in link."`
	SignOut accountSignOutCmd `cmd:"" name:"sign-out" help:"End every session of an account."`
	Role    accountRoleCmd    `cmd:"" help:"Make an account an owner's or an operator's."`
	Mail    accountMailCmd    `cmd:"" help:"Set the address that sign-in links go to; the former address is notified."`
	Close   accountCloseCmd   `cmd:"" help:"Delete an account with its sessions and tokens; its profiles stay."`
}

type accountCreateCmd struct {
	Name    string   `arg:"" help:"Name of the person."`
	Role    string   `default:"owner" enum:"owner,operator" help:"owner or operator."`
	Mail    string   `help:"Mail address that you know to be theirs; sign-in links can be sent there."`
	Profile []string `placeholder:"HANDLE" help:"A profile to assign to the account. Repeatable."`
}

func (c *accountCreateCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		made, err := node.Do(ctx, a, protocol.OpenAccount, protocol.NewAccount{Name: c.Name, Role: protocol.Role(c.Role), Mail: c.Mail, Handles: c.Profile})
		if err != nil {
			return err
		}
		fmt.Fprintln(w.stderr, made.Account.ID)
		return all.printLink(w, made.Account.ID, made.SignIn.URL)
	})
}

func (c *adminCmd) printLink(w *world, account, link string) error {
	fmt.Fprintln(w.stderr, "the link can be used once, within 30 minutes")
	return c.table(w, map[string]string{"account": account, "link": link}, func(t io.Writer) { fmt.Fprintln(t, link) })
}

type accountListCmd struct {
	Limit int    `default:"100" help:"How many, 1 to 100."`
	After string `help:"Next page."`
}

func (c *accountListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		page, err := node.Do(ctx, a, protocol.ListAccounts, protocol.Paging{Limit: c.Limit, After: c.After})
		if err != nil {
			return err
		}
		err = all.table(w, page, func(t io.Writer) {
			for _, acc := range page.Items {
				mail, handles := "", make([]string, len(acc.Handles))
				if acc.Mail != nil {
					mail = *acc.Mail
				}
				for i, h := range acc.Handles {
					handles[i] = "@" + h
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", acc.ID, acc.Role, acc.Name, mail, strings.Join(handles, " "))
			}
		})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			fmt.Fprintln(w.stderr, "no accounts")
		}
		if page.Next != nil {
			fmt.Fprintf(w.stderr, "more: --after %s\n", *page.Next)
		}
		return nil
	})
}

type accountLinkCmd struct {
	Account string `arg:"" help:"Id of the account."`
	Handle  string `arg:"" help:"The profile."`
}

func (c *accountLinkCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.LinkProfile, protocol.ProfileLink{HandleInput: protocol.HandleInput{Handle: c.Handle}, Account: c.Account})
}

type accountUnlinkCmd struct {
	Handle string `arg:"" help:"The profile."`
}

func (c *accountUnlinkCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.UnlinkProfile, protocol.HandleInput{Handle: c.Handle})
}

type accountSignInCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
}

func (c *accountSignInCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		link, err := node.Do(ctx, a, protocol.MakeSignInLink, protocol.AccountRef{Account: c.Account})
		if err != nil {
			return err
		}
		return all.printLink(w, c.Account, link.URL)
	})
}

type accountSignOutCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
	Forget  bool   `help:"Delete its passkeys and recovery codes too, for an owner who lost a device."`
}

func (c *accountSignOutCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		out, err := node.Do(ctx, a, protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: c.Account}, Forget: c.Forget})
		if err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, "ended: %d; API tokens stay, see stoa admin token list\n", out.Ended)
		return nil
	})
}

type accountRoleCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
	Role    string `arg:"" enum:"owner,operator" help:"owner or operator."`
}

func (c *accountRoleCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.SetRole, protocol.RoleChange{AccountRef: protocol.AccountRef{Account: c.Account}, Role: protocol.Role(c.Role)})
}

type accountMailCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
	Mail    string `arg:"" optional:"" help:"Address that you know to be theirs. Without it the account's address is removed."`
}

func (c *accountMailCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.SetAccountMail, protocol.MailChange{
		AccountRef: protocol.AccountRef{Account: c.Account}, AccountMailDraft: protocol.AccountMailDraft{Mail: c.Mail},
	})
}

type accountCloseCmd struct {
	Account string `arg:"" help:"Id of the account, or one of its profiles."`
}

func (c *accountCloseCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.CloseAccount, protocol.AccountRef{Account: c.Account})
}

type adminTokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token. It is shown once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token."`
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
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		made, err := node.Do(ctx, a, protocol.GrantToken, in)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, "%s: keep it, it is not shown again\n", made.Token.ID)
		return all.table(w, map[string]string{"id": made.Token.ID, "token": made.Secret}, func(t io.Writer) { fmt.Fprintln(t, made.Secret) })
	})
}

type tokenListCmd struct {
	For string `arg:"" name:"for" help:"The profile, or the id of an account."`
}

func (c *tokenListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		tokens, err := node.Do(ctx, a, protocol.TokensOf, protocol.AccountRef{Account: c.For})
		if err != nil {
			return err
		}
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

type tokenRevokeCmd struct {
	ID string `arg:""`
}

func (c *tokenRevokeCmd) Run(w *world, all *adminCmd) error {
	return do(all, w, protocol.RevokeToken, protocol.TokenRef{ID: c.ID})
}
