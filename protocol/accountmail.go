package protocol

// AccountMail is the address that sign-in links of an account are sent to.
type AccountMail struct {
	Mail        *string `json:"mail" doc:"Confirmed address, which sign-in links are sent to; null for none."`
	Asked       *string `json:"asked" doc:"New address that is not confirmed yet; null for none."`
	MailOffered bool    `json:"mailOffered" doc:"This node sends mail."`
}

var GetAccountMail = declare[None, AccountMail](Operation{
	Name: "get_account_mail", Title: "Get the account's mail address",
	Summary: "The address that sign-in links are sent to, and a new address that is not confirmed yet.",
	HTTP:    Route{"GET", "/api/owner/account/mail", 200}, For: Owners, Access: Session, Scope: ScopeAccount, ReadOnly: true, Codes: []Code{Forbidden},
	Example: None{},
})

// An AccountMailDraft is the address that an owner wants.
type AccountMailDraft struct {
	Mail string `json:"mail,omitempty" shape:"mail" maxLength:"254" doc:"The new address; a code to confirm it is sent there. Left out: the account's address is removed."`
}

func isMail(address string) bool {
	_, err := ParseMail(address)
	return err == nil
}

var PutAccountMail = declare[AccountMailDraft, AccountMail](Operation{
	Name: "put_account_mail", Title: "Change the account's mail address",
	Summary: "Changes the address for sign-in links. The change takes effect when its code is given to confirm_account_mail.",
	Description: "Until then the old address stays in use, and is told. Giving the present address withdraws the change. " +
		"Without an address the old one is removed at once; then only the operator makes sign-in links. " +
		"Who reads mail at the address can do everything, so this needs a session, or a token with every scope and no expiry.",
	HTTP: Route{"PUT", "/api/owner/account/mail", 200}, For: Owners, Access: Session, Scope: ScopeAccount,
	Codes: []Code{Forbidden, SignInAgain, Conflict}, Example: AccountMailDraft{Mail: "asha@example.org"},
})

// An AccountMailCode is the code in the mail to a new address.
type AccountMailCode struct {
	Code string `json:"code" shape:"mail-code" doc:"The code in the mail."`
}

var ConfirmAccountMail = declare[AccountMailCode, AccountMail](Operation{
	Name: "confirm_account_mail", Title: "Confirm the account's new mail address",
	Summary: "Confirms that you can read mail at the new address; from then on sign-in links are sent there.",
	HTTP:    Route{"POST", "/api/owner/account/mail/confirm", 200}, For: Owners, Idempotent: true, Access: Session, Scope: ScopeAccount,
	Codes:   []Code{Forbidden, Gone, Conflict},
	Example: AccountMailCode{"q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})
