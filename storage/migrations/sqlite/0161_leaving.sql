-- +goose Up

-- What its owner deletes, a profile by its handle or an account by its id, until it is gone. account: of a profile, the account that is closed with it.
-- hidden_at: null while money and meetings are settled. accepting, meetings: the board took bids, the person took requests. state, reason: of the
-- profile before.
CREATE TABLE leaving (
	subject   TEXT    PRIMARY KEY,
	account   TEXT    NOT NULL,
	asked_at  INTEGER NOT NULL,
	hidden_at INTEGER,
	erasing   INTEGER NOT NULL CHECK (erasing IN (0, 1)),
	accepting INTEGER NOT NULL CHECK (accepting IN (0, 1)),
	meetings  INTEGER NOT NULL CHECK (meetings IN (0, 1)),
	state     TEXT    NOT NULL,
	reason    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leaving_account ON leaving (account, subject) WHERE account <> '';

-- Hidden posts of a profile of this node: those that are hidden since it is not shown are among them.
CREATE INDEX post_own_hidden ON post (author_handle, seq) WHERE author_local AND author_handle IS NOT NULL AND state = 'hidden';
