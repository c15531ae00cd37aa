-- +goose Up

-- A profile that is not shown: it waits for approval, was refused or suspended, or leaves. wish: its owner lists it once it is shown.
ALTER TABLE profile ADD COLUMN state TEXT NOT NULL DEFAULT '' CHECK (state IN ('', 'pending', 'refused', 'suspended', 'leaving'));
ALTER TABLE profile ADD COLUMN state_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN state_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE profile ADD COLUMN wish INTEGER NOT NULL DEFAULT 1 CHECK (wish IN (0, 1));
UPDATE profile SET wish = listed;
CREATE INDEX profile_state ON profile (state, state_at, seq) WHERE state <> '';

-- Every handle that a profile has or had. skeleton: two handles that look alike have the same.
CREATE TABLE handle (
	handle   TEXT    PRIMARY KEY,
	skeleton TEXT    NOT NULL,
	taken_at INTEGER NOT NULL,
	gone_at  INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO handle (handle, skeleton, taken_at)
	SELECT handle, replace(replace(replace(replace(replace(replace(handle, '-', ''), '0', 'o'), '1', 'l'), 'i', 'l'), 'm', 'rn'), 'w', 'vv'), created_at FROM profile;
CREATE INDEX handle_skeleton ON handle (skeleton, handle);
