-- +goose Up
-- The oldest version whose programs can use these tables. A migration that takes away what they need writes its own number here
-- (UPDATE compatible SET since = N); all others only add.
CREATE TABLE compatible (since INTEGER PRIMARY KEY);
INSERT INTO compatible (since) VALUES (236);
