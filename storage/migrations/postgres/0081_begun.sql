-- +goose Up

-- What a chain identity without a profile began and opens with a token: the name of
-- identity and owner until the identity has another owner (storage/begun.go).
ALTER TABLE thread ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE bid ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE meeting ADD COLUMN agent TEXT COLLATE "C";
UPDATE thread SET agent = writer WHERE writer LIKE 'agent:%' AND author::json->>'handle' IS NULL;
UPDATE bid SET agent = bidder WHERE bidder LIKE 'agent:%' AND doc::json->'author'->>'handle' IS NULL;
UPDATE meeting SET agent = requester WHERE requester LIKE 'agent:%' AND doc::json->'author'->>'handle' IS NULL;
CREATE INDEX thread_agent ON thread (agent) WHERE agent IS NOT NULL;
CREATE INDEX bid_agent ON bid (agent) WHERE agent IS NOT NULL;
CREATE INDEX meeting_agent ON meeting (agent) WHERE agent IS NOT NULL;
