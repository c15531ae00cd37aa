-- +goose Up

-- How long invitations are listed and counted, which is longer than they let somebody join.
ALTER TABLE invitation ADD COLUMN kept_until INTEGER NOT NULL DEFAULT 0;
UPDATE invitation SET kept_until = created_at + 2592000000;
DROP INDEX invitation_expires;
DROP INDEX invitation_account;
CREATE INDEX invitation_kept ON invitation (kept_until);
CREATE INDEX invitation_list ON invitation (account, id);
