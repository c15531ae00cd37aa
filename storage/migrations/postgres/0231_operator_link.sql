-- +goose Up

-- One link makes the first operator: operator.
ALTER TABLE ticket DROP CONSTRAINT ticket_purpose_check;
ALTER TABLE ticket ADD CONSTRAINT ticket_purpose_check CHECK (purpose IN ('sign-in', 'notice-mail', 'account-mail', 'former-mail', 'operator'));

-- Whether there is an operator.
CREATE INDEX account_operator ON account (id) WHERE role = 'operator';
