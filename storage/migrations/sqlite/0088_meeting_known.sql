-- +goose Up

-- Whether who asked is known to the node, or has confirmed the mailbox; and when a known caller last had mail sent there.
ALTER TABLE meeting ADD COLUMN known INTEGER NOT NULL DEFAULT 1 CHECK (known IN (0, 1));
UPDATE meeting SET known = 0 WHERE state = 'unconfirmed' AND requester LIKE 'net:%';
ALTER TABLE meeting_mailbox ADD COLUMN known_at INTEGER NOT NULL DEFAULT 0;
DROP INDEX meeting_asked;
CREATE INDEX meeting_unconfirmed ON meeting (handle, known, asked_at) WHERE state = 'unconfirmed';
DROP INDEX meeting_mailbox_waits;
CREATE INDEX meeting_mailbox_waits ON meeting (mailbox, id) WHERE state IN ('unconfirmed', 'submitted', 'proposed');
