-- +goose Up

-- wallet: the Ethereum account that signs in, in lower case.
ALTER TABLE account ADD COLUMN wallet TEXT COLLATE "C";
CREATE UNIQUE INDEX account_wallet ON account (wallet) WHERE wallet IS NOT NULL;
