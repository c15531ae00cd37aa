-- +goose Up

-- The names of the place of each listed business that says where it is: parts of its address. In millionths of a degree.
CREATE TABLE merchant_place (
	name      TEXT COLLATE "C" NOT NULL,
	seq       BIGINT           NOT NULL,
	latitude  BIGINT           NOT NULL,
	longitude BIGINT           NOT NULL,
	PRIMARY KEY (name, seq)
);
CREATE INDEX merchant_place_seq ON merchant_place (seq, name, latitude, longitude);
