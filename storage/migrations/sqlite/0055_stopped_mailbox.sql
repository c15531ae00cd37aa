-- +goose Up

-- Mailboxes that want no mail, oldest first: their number is bounded too.
CREATE INDEX meeting_mailbox_stopped ON meeting_mailbox (sent_at) WHERE stopped;
