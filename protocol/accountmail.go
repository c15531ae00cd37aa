package protocol

// AccountMail is where sign-in links of an account go.
type AccountMail struct {
	Mail        *string `json:"mail" doc:"Confirmed address, which sign-in links are sent to; null for none."`
	Asked       *string `json:"asked" doc:"Address that was asked for and is not confirmed yet; null for none."`
	MailOffered bool    `json:"mailOffered" doc:"This node sends mail."`
}

var GetAccountMail = declare[None, AccountMail](Operation{
	Name: "get_account_mail", Title: "Get the account's mail address",
	Summary: "Where sign-in links of the account go, and the address that waits for its confirmation.",
	HTTP:    Route{"GET", "/api/owner/account/mail", 200}, Doors: HTTP | MCP, For: Owners,
	Access: Session, Scope: ScopeAccount, ReadOnly: true, NoStore: true, Codes: []Code{Forbidden},
	Example: None{},
})

// An AccountMailDraft is the address that an owner wants.
type AccountMailDraft struct {
	Mail string `json:"mail,omitempty" maxLength:"254" doc:"The new address; a code to confirm it is sent there. Left out: the account has none from now on."`
}

// Check finds an address that is none.
func (d AccountMailDraft) Check() []Fault { return mailFaults(d.Mail) }

// mailFaults finds an address that is none; "" is no fault.
func mailFaults(address string) []Fault {
	if _, err := ParseMail(address); address != "" && err != nil {
		return []Fault{{"/mail", "not-an-address", "must be a mail address such as asha@example.org"}}
	}
	return nil
}

var PutAccountMail = declare[AccountMailDraft, AccountMail](Operation{
	Name: "put_account_mail", Title: "Change the account's mail address",
	Summary: "Ask for another address for sign-in links; it takes effect when its code is given to confirm_account_mail.",
	Description: "Until then everything stays as it is. The former address is told of the change. Asking for the address that the account has withdraws what was asked for; " +
		"without an address the account has none, at once, and its owner is signed in by a link of the operator's. " +
		"Whoever reads the address can sign in and do everything: it takes a session, or a token with every scope that does not run out.",
	HTTP: Route{"PUT", "/api/owner/account/mail", 200}, Doors: HTTP | MCP, For: Owners,
	Access: Session, Scope: ScopeAccount, Codes: []Code{Forbidden, Conflict},
	Example: AccountMailDraft{Mail: "asha@example.org"},
})

// An AccountMailCode is what the mail to a new address holds.
type AccountMailCode struct {
	Code string `json:"code" shape:"mail-code" doc:"The code in the mail."`
}

var ConfirmAccountMail = declare[AccountMailCode, AccountMail](Operation{
	Name: "confirm_account_mail", Title: "Confirm the account's new mail address",
	Summary: "Show that you can read what is sent to the address that was asked for; sign-in links go there from now on.",
	HTTP:    Route{"POST", "/api/owner/account/mail/confirm", 200}, Doors: HTTP | MCP, For: Owners, Idempotent: true,
	Access: Session, Scope: ScopeAccount, Codes: []Code{Forbidden, Gone, Conflict},
	Example: AccountMailCode{"q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})
