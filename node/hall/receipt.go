package hall

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// write runs the operation in one transaction with everything that belongs to it: reading the
// receipt, spending the proof or nonce, the change and its consequences, and the new receipt.
func (t *Table) write(ctx context.Context, e *entry, req Request, in *input, paid bool, res *Result) error {
	var digest [32]byte
	if req.IdempotencyKey != "" {
		digest = digestOf(e.op.Name, in.args)
	}
	err := t.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		res.Value, res.JSON, res.Replayed = nil, nil, false
		// A nonce is spent even when the idempotency key has a receipt: a request that was
		// intercepted must not open the stored answer. A client that repeats a request signs it
		// again.
		if err := spend(ctx, tx, res.Caller, true); err != nil {
			return err
		}
		if req.IdempotencyKey != "" {
			kept, err := tx.Requests().Receipt(ctx, res.Caller.ID(), req.IdempotencyKey)
			if err != nil {
				return err
			}
			if kept != nil {
				if kept.Digest != digest || kept.Operation != e.op.Name {
					return &protocol.Error{Code: protocol.Conflict, Detail: "this Idempotency-Key was used for another request in the last 24 hours", Err: ErrKeyReused}
				}
				if e.op.OneTime { // by a form that was sent twice
					return protocol.Errorf(protocol.Conflict, "this was done when the form was sent first; what it made is shown only once")
				}
				res.Replayed = true
				res.JSON, err = t.unseal(kept)
				return err
			}
		}
		if err := spend(ctx, tx, res.Caller, false); err != nil {
			return err
		}
		// After the receipt, so that a repeated request does not count as a similar text.
		if !paid {
			return errAlike
		}
		if err := t.unchanged(ctx, tx, e.op, req.IfMatch, in.args, res.Caller); err != nil {
			return err
		}
		value, err := in.run(ctx, e, tx, res.Caller)
		if err != nil {
			return err
		}
		res.Value = value
		if req.IdempotencyKey == "" {
			return nil
		}
		answer, err := encode(e.op, value)
		if err != nil {
			return err
		}
		res.JSON = answer
		if e.op.OneTime {
			answer = nil
		}
		return tx.Requests().KeepReceipt(ctx, t.seal(storage.Receipt{
			Caller: res.Caller.ID(), Key: req.IdempotencyKey, Operation: e.op.Name,
			Digest: digest, Answer: answer, Expires: tx.Now.Add(ReceiptLifetime),
		}))
	}, res.Caller.Spend...)
	if err == nil && req.IdempotencyKey == "" { // encoded here, where no other write waits
		res.JSON, err = encode(e.op, res.Value)
	}
	return err
}

// unchanged returns precondition-failed when the answer of the read that a write replaces no longer
// has the tag that the caller names (RFC 9110 §13.1.1). The read is of the same transaction.
func (t *Table) unchanged(ctx context.Context, tx *storage.Tx, op *protocol.Operation, tag string, args []byte, c protocol.Caller) error {
	if tag == "" || tag == "*" || op.Replaces == nil {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return err
	}
	read := t.Schemas.Resolve(t.entries[op.Replaces.Name].in).Properties
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return read[name] == nil })
	named, err := json.Marshal(all)
	if err != nil {
		return err
	}
	value, err := (&input{args: named}).run(ctx, t.entries[op.Replaces.Name], tx, c)
	if err != nil {
		return err
	}
	body, err := JSON(value)
	if err == nil && netx.Tag(body) != tag {
		err = protocol.Errorf(protocol.PreconditionFailed, "this has changed since you read it; read it again with %s", op.Replaces.Name)
	}
	return err
}

// spend spends the nonces of a caller, or everything else that it brought: a proof of work pays
// for the first answer to an idempotency key and for every repetition.
func spend(ctx context.Context, tx *storage.Tx, c protocol.Caller, nonces bool) error {
	for _, s := range c.Spend {
		if nonces != (s.Code == protocol.SignatureReplayed) {
			continue
		}
		if err := tx.Requests().Spend(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// seal encrypts the answer of a receipt: it may contain a secret that is shown once and otherwise
// stored only as a hash.
func (t *Table) seal(r storage.Receipt) storage.Receipt {
	if t.Receipts != nil {
		r.Answer = t.Receipts.Seal(receiptPurpose(&r), r.Answer)
	}
	return r
}

func (t *Table) unseal(r *storage.Receipt) ([]byte, error) {
	if t.Receipts == nil {
		return r.Answer, nil
	}
	answer, err := t.Receipts.Open(receiptPurpose(r), r.Answer)
	if err != nil {
		return nil, protocol.Errorf(protocol.Conflict, "the stored answer for this Idempotency-Key can no longer be read; use a new key: %w", err)
	}
	return answer, nil
}

func receiptPurpose(r *storage.Receipt) string { return "receipt " + r.Caller + " " + r.Key }

// digestOf identifies a request for an idempotency key: the operation and the arguments, without
// the proof of work.
func digestOf(op string, args []byte) [32]byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) == nil {
		delete(members, "pow")
		if plain, err := json.Marshal(members); err == nil {
			if canonical, err := strictjson.Canonical(plain); err == nil {
				args = canonical
			}
		}
	}
	return sha256.Sum256(append([]byte(op+"\x00"), args...))
}
