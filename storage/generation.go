package storage

import (
	"context"

	"stoa/storage/commit"
)

// Groups of tables that something in memory is made of, for [DB.Generation].
const (
	GroupKeys     = iota // the profiles that keys and chain identities speak for
	GroupAccounts        // tokens and sessions, and the profiles that they may act as
	GroupRules           // blocks, and the settings of the deployment
)

var groups = []commit.Group{
	GroupKeys:     {Name: "keys", Tables: []string{"agent_key", "delegated_key", "enrolment", "joined", "profile"}},
	GroupAccounts: {Name: "accounts", Tables: []string{"account", "account_profile", "api_token", "session", "enrolment", "profile"}},
	GroupRules:    {Name: "rules", Tables: []string{"block", "secret"}},
}

// Generation returns a number that grows when a write of this process changes a table of a
// group, and within two seconds when one of another process does. What is read after the
// first call and kept while the number is the same and valid includes these changes. valid is
// false when the database could not be asked; then nothing that is kept may be used.
func (db *DB) Generation(ctx context.Context, group int) (n uint64, valid bool) {
	return db.sql.Generation(ctx, group)
}

// writeAside is write for a change of such a table that nothing in memory is made of: it
// would otherwise be read again for each.
func (tx *Tx) writeAside(ctx context.Context, query string, args ...any) (int64, error) {
	return tx.sql.ExecAside(ctx, query, args...)
}
