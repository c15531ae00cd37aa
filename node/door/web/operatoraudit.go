package web

// auditActions are the actions that operators look for; others can be typed.
var auditActions = []string{
	"account close", "account create", "account link", "account mail", "account role", "account sign-in", "account sign-out", "account unlink",
	"archive import", "backup", "bid confirm", "bid refund", "block", "block lift", "examine", "flag", "identity end", "identity put", "job drop", "job requeue",
	"kept-out", "key add", "key retire", "keys export", "limits reset", "limits set", "new epoch", "note", "note delete", "peer follow", "peer policy",
	"peer retry", "peer unfollow", "post delete", "post dismiss", "post hide", "post reopen", "post restore", "profile delete", "profile put", "report forward",
	"session begin", "session end",
	"token create", "token revoke",
}

// who returns the name of an actor of the audit, its id when it has none.
func (o *operatorView) who(actor string) string {
	if name := o.Names[actor]; name != "" {
		return name
	}
	return actor
}
