-- +goose Up

-- The profile of this node that made a bid or a meeting request, null for none: what a profile wrote to others is in its archive, and is
-- deleted with it.
ALTER TABLE bid ADD COLUMN writer_handle TEXT COLLATE "C";
UPDATE bid SET writer_handle = doc::json ->> 'by' WHERE doc::json ->> 'by' <> '';
CREATE INDEX bid_written ON bid (writer_handle, id) WHERE writer_handle IS NOT NULL;
ALTER TABLE meeting ADD COLUMN writer_handle TEXT COLLATE "C";
UPDATE meeting SET writer_handle = doc::json ->> 'by' WHERE doc::json ->> 'by' <> '';
CREATE INDEX meeting_written ON meeting (writer_handle, id) WHERE writer_handle IS NOT NULL;
DROP INDEX thread_writer_handle;
CREATE INDEX thread_writer_handle ON thread (writer_handle, id) WHERE writer_handle IS NOT NULL;
