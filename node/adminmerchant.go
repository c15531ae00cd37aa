package node

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/storage"
)

var merchantType = reflect.TypeFor[protocol.MerchantDraft]()

// ParseMerchant reads a merchant record as an owner writes it. The error is a
// validation error with every fault.
func (a *Admin) ParseMerchant(raw []byte) (draft protocol.MerchantDraft, err error) {
	if err := strictjson.Check(raw, strictjson.Limits{MaxBytes: 256 << 10, MaxDepth: 16, MaxTokens: 20_000}); err != nil {
		return draft, protocol.Errorf(protocol.InvalidRequest, "the record is not acceptable JSON: %w", err)
	}
	raw = strictjson.Whole(raw)
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return draft, protocol.Errorf(protocol.InvalidRequest, "the record must be a JSON object")
	}
	faults := a.schemas.Check(a.schemas.Of(merchantType), members)
	if len(faults) == 0 {
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&draft); err != nil {
			return draft, err
		}
		faults = draft.Check()
	}
	if len(faults) > 0 {
		return draft, protocol.Invalid(faults...)
	}
	return draft, nil
}

// PutMerchant writes the merchant record of a business whole.
func (a *Admin) PutMerchant(ctx context.Context, handle string, raw []byte) (r protocol.MerchantRecord, err error) {
	draft, err := a.ParseMerchant(raw)
	if err != nil {
		return r, err
	}
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if r, err = a.directory.PutMerchant(ctx, tx, handle, draft); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "merchant put", handle, "")
	})
	return r, err
}

// Merchant reads the record of a business as its owner wrote it.
func (a *Admin) Merchant(ctx context.Context, handle string) (r protocol.MerchantRecord, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		r, err = a.directory.Record(ctx, tx, protocol.Caller{Standing: protocol.Operator}, protocol.Owned{Handle: handle})
		return err
	})
	return r, err
}
