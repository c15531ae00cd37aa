-- +goose Up

-- Inboxes that are behind, apart from those that fail: a dead one is always
-- behind, and is looked at when its time has come.
DROP INDEX outlet_cursor;
CREATE INDEX outlet_behind ON outlet (board, cursor) WHERE state = 'active';
CREATE INDEX outlet_failing ON outlet (next_at) WHERE state <> 'active';

CREATE INDEX job_kind ON job (state, kind, run_at);
CREATE INDEX ticket_mail ON ticket (mail, purpose, expires_at);
CREATE INDEX ticket_handle ON ticket (handle, purpose, expires_at);
DROP INDEX ticket_account;
CREATE INDEX ticket_account ON ticket (account, purpose, expires_at);
DROP INDEX subscription_due;
CREATE INDEX subscription_due ON subscription (next_at) WHERE state = 'accepted';
