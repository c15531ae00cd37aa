-- +goose Up

-- What its owner deletes, a profile by its handle or an account by its id, until it is gone. account: of a profile, the account that is closed with it.
-- hidden_at: null while money and meetings are settled. accepting, meetings: the board took bids, the person took requests. state, reason: of the
-- profile before.
CREATE TABLE leaving (
	subject   TEXT COLLATE "C" PRIMARY KEY,
	account   TEXT COLLATE "C" NOT NULL,
	asked_at  BIGINT NOT NULL,
	hidden_at BIGINT,
	erasing   BOOLEAN NOT NULL,
	accepting BOOLEAN NOT NULL,
	meetings  BOOLEAN NOT NULL,
	state     TEXT COLLATE "C" NOT NULL,
	reason    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX leaving_account ON leaving (account, subject) WHERE account <> '';

-- Hidden posts of a profile of this node: those that are hidden since it is not shown are among them.
CREATE INDEX post_own_hidden ON post (author_handle, seq) WHERE author_local AND author_handle IS NOT NULL AND state = 'hidden';
