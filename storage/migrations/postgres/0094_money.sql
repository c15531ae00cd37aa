-- +goose Up

-- The currency of a payment, and of what goes back of it: paise counts the minor
-- units of that currency.
ALTER TABLE payment ADD COLUMN currency TEXT COLLATE "C" NOT NULL DEFAULT 'INR';
ALTER TABLE refund ADD COLUMN currency TEXT COLLATE "C" NOT NULL DEFAULT 'INR';

-- What an event is about: the bid of its link and the id of its payment, '' where
-- it names none.
ALTER TABLE pay_event ADD COLUMN bid TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE pay_event ADD COLUMN payment_id TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE pay_event SET payment_id = COALESCE(head::json -> 0 ->> 'PaymentID', ''),
	bid = CASE WHEN head::json -> 0 ->> 'Ref' LIKE 'bid\_%-_%' THEN substr(head::json -> 0 ->> 'Ref', 1, 30) ELSE '' END
	WHERE head NOT LIKE '%u0000%';

-- By what a payment is looked for: its payer's or its provider's ids.
CREATE INDEX pay_event_bid ON pay_event (bid, id) WHERE bid <> '';
CREATE INDEX pay_event_payment ON pay_event (payment_id, id) WHERE payment_id <> '';
CREATE INDEX pay_event_named ON pay_event (event_id);
CREATE INDEX payment_named ON payment (payment_id);
CREATE INDEX payment_reference ON payment (reference) WHERE reference <> '';
CREATE INDEX bid_utr ON bid (utr) WHERE utr IS NOT NULL;
