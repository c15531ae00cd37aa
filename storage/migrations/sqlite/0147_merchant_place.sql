-- +goose Up

-- The names of the place of each listed business that says where it is: parts of its address. In millionths of a degree.
CREATE TABLE merchant_place (
	name      TEXT    NOT NULL,
	seq       INTEGER NOT NULL,
	latitude  INTEGER NOT NULL,
	longitude INTEGER NOT NULL,
	PRIMARY KEY (name, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX merchant_place_seq ON merchant_place (seq, name, latitude, longitude);
