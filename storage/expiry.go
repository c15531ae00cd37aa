package storage

import "context"

// Rows that are deleted without a method of their subject. TestTables fails for a
// table with a column handle, or with one for the end of a row, that is in no list.

// ofProfile are the tables whose rows belong to the profile that their column handle
// names: Profiles.Delete deletes them.
var ofProfile = []string{"agent_key", "account_profile", "notify", "enrolment", "api_token", "meeting_rules", "calendar_account", "calendar_busy",
	"meeting_event", "meeting_feed", "order_receipt", "crowd", "agent_told", "remote_refusal", "joined", "catalog_source", "picture_use"}

// An expiry says that the rows of a table end at the time in a column. The table has
// an index that begins with it. key are the columns that identify a row.
type expiry struct{ table, key, end string }

// expiring are the tables from which the job prune deletes what has ended.
var expiring = []expiry{
	{"acme_challenge", "key", "ends_at"},
	{"checkout", "id", "ends_at"},
	{"complaint", "id", "until"},
	{"crowd", "handle, what, at", "until"},
	{"delegated_key", "id", "ends_at"},
	{"device", "id", "ends_at"},
	{"draft", "hash", "ends_at"},
	{"exchange", "thread_id, first", "ends_at"},
	{"exchange_push", "thread_id, first, id", "ends_at"},
	{"invitation", "id", "kept_until"},
	{"join_mail", "hash", "expires_at"},
	{"join_try", "id", "until"},
	{"log_report", "host", "until"},
	{"log_witness", "host", "until"},
	{"meeting_event", "meeting", "until"},
	{"meeting_letter", "id", "ends_at"},
	{"receipt", "rowid", "expires"},
	{"remote_refusal", "actor", "until"},
	{"session", "id", "expires_at"},
	{"ticket", "hash", "expires_at"},
	{"tombstone", "uri", "until"},
	{"used_signature", "key", "until"},
}

func (e expiry) ended() string { return e.end + ` <= ? ORDER BY ` + e.end + ` LIMIT 1000` }

func (e expiry) prune(ctx context.Context, tx *Tx) (int, error) {
	return tx.deleteSome(ctx, e.table, e.key, e.ended(), millis(tx.Now))
}

// PruneExpired deletes rows that have ended, at most a thousand of one table per
// call, and returns how many: 0 when none is left.
func (tx *Tx) PruneExpired(ctx context.Context) (int, error) {
	for _, e := range expiring {
		if n, err := e.prune(ctx, tx); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}
