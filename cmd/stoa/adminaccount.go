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
	Link    accountLinkCmd    `cmd:"" help:"Give a profile to an account, whosever it was before."`
	Unlink  accountUnlinkCmd  `cmd:"" help:"Take a profile from its account, with the tokens for it."`
	SignIn  accountSignInCmd  `cmd:"" name:"sign-in" help:"Print another one-time sign-in link."`
	SignOut accountSignOutCmd `cmd:"" name:"sign-out" help:"End every session of an account."`
	Role    accountRoleCmd    `cmd:"" help:"Make an account an owner's or an operator's."`
	Mail    accountMailCmd    `cmd:"" help:"Set the address that sign-in links go to; the former one is told."`
	Close   accountCloseCmd   `cmd:"" help:"Take an account away with its sessions and tokens; its profiles stay."`
}

type accountCreateCmd struct {
	Name    string   `arg:"" help:"What the person is called."`
	Role    string   `default:"owner" enum:"owner,operator" help:"owner or operator."`
	Mail    string   `help:"Mail address that you know to be theirs; sign-in links can be sent there."`
	Profile []string `placeholder:"HANDLE" help:"A profile that is theirs. Repeatable."`
}

func (c *accountCreateCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		handles := make([]string, len(c.Profile))
		for i, h := range c.Profile {
			handles[i] = protocol.CleanHandle(h)
		}
		acc, link, err := a.OpenAccount(ctx, c.Name, protocol.Role(c.Role), c.Mail, handles)
		if err != nil {
			return err
		}
		fmt.Fprintln(w.stderr, acc.ID)
		return all.printLink(w, acc.ID, link)
	})
}

func (c *adminCmd) printLink(w *world, account, link string) error {
	fmt.Fprintln(w.stderr, "the link signs in once, within 30 minutes")
	return c.table(w, map[string]string{"account": account, "link": link}, func(t io.Writer) { fmt.Fprintln(t, link) })
}

type accountListCmd struct {
	Limit int    `default:"100" help:"How many, 1 to 100."`
	After string `help:"Next page."`
}

func (c *accountListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		var page protocol.Page[protocol.KnownAccount]
		if err := a.Operate(ctx, protocol.ListAccounts.Operation, protocol.Paging{Limit: c.Limit, After: c.After}, &page); err != nil {
			return err
		}
		err := all.table(w, page, func(t io.Writer) {
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
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		return a.LinkProfile(ctx, c.Account, protocol.CleanHandle(c.Handle))
	})
}

type accountUnlinkCmd struct {
	Handle string `arg:"" help:"The profile."`
}

func (c *accountUnlinkCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		return a.UnlinkProfile(ctx, protocol.CleanHandle(c.Handle))
	})
}

type accountSignInCmd struct {
	Account string `arg:"" help:"Id of the account, or a profile of it."`
}

func (c *accountSignInCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		link, err := a.SignInLink(ctx, protocol.CleanHandle(c.Account))
		if err != nil {
			return err
		}
		return all.printLink(w, c.Account, link)
	})
}

type accountSignOutCmd struct {
	Account string `arg:"" help:"Id of the account, or a profile of it."`
}

func (c *accountSignOutCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		ended, err := a.SignOut(ctx, c.Account)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, "ended: %d; API tokens stay, see stoa admin token list\n", ended)
		return nil
	})
}

type accountRoleCmd struct {
	Account string `arg:"" help:"Id of the account, or a profile of it."`
	Role    string `arg:"" enum:"owner,operator" help:"owner or operator."`
}

func (c *accountRoleCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		return a.SetRole(ctx, c.Account, protocol.Role(c.Role))
	})
}

type accountMailCmd struct {
	Account string `arg:"" help:"Id of the account, or a profile of it."`
	Mail    string `arg:"" optional:"" help:"Address that you know to be theirs; without, the account has none."`
}

func (c *accountMailCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error { return a.SetMail(ctx, c.Account, c.Mail) })
}

type accountCloseCmd struct {
	Account string `arg:"" help:"Id of the account, or a profile of it."`
}

func (c *accountCloseCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		return a.Operate(ctx, protocol.CloseAccount.Operation, protocol.AccountRef{Account: protocol.CleanHandle(c.Account)}, nil)
	})
}

type adminTokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token. It is shown once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token."`
}

type tokenCreateCmd struct {
	For   string        `arg:"" name:"for" help:"The profile it is for, or the id of an account, for every profile of it."`
	Label string        `default:"token" help:"What it is for."`
	TTL   time.Duration `name:"ttl" help:"How long it lives; without, until it is revoked."`
	Scope []string      `enum:"post,profile,keys,inbox,notify,archive,account,operator" help:"What it allows: post, profile, keys, inbox, notify, archive; for an account also account, and for an operator's account operator. Default: all that concerns a profile."`
}

func (c *tokenCreateCmd) Run(w *world, all *adminCmd) error {
	scopes := make([]protocol.Scope, len(c.Scope))
	for i, s := range c.Scope {
		scopes[i] = protocol.Scope(s)
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		create, name := a.CreateToken, protocol.CleanHandle(c.For)
		if protocol.IsID(protocol.AccountID, c.For) {
			create, name = a.CreateAccountToken, c.For
			if len(scopes) == 0 {
				scopes = protocol.OwnerScopes
			}
		}
		secret, t, err := create(ctx, name, c.Label, c.TTL, scopes...)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, "%s: keep it, it is not shown again\n", t.ID)
		return all.table(w, map[string]string{"id": t.ID, "token": secret}, func(t io.Writer) { fmt.Fprintln(t, secret) })
	})
}

type tokenListCmd struct {
	For string `arg:"" name:"for" help:"The profile, or the id of an account."`
}

func (c *tokenListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		tokens, err := a.Tokens(ctx, c.For)
		if err != nil {
			return err
		}
		var lines [][]string
		for _, k := range tokens {
			state := "active"
			switch {
			case k.RevokedAt != nil:
				state = "revoked"
			case k.ExpiresAt != nil && k.ExpiresAt.Before(time.Now()):
				state = "run out"
			}
			lines = append(lines, []string{k.ID, k.Name, k.CreatedAt.Format(time.RFC3339), state, strings.Join(k.Scopes, ",")})
		}
		return all.rows(w, "id label createdAt state scopes", lines)
	})
}

type tokenRevokeCmd struct {
	ID string `arg:""`
}

func (c *tokenRevokeCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error { return a.RevokeToken(ctx, c.ID) })
}
