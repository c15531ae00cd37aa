package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// A sealedColumn holds what is sealed with the master key.
type sealedColumn struct {
	table, column string
	key           []string
	where         string // rows that are not sealed are left out; "" for none
	purpose       func(key []any) string
	document      bool // the column is JSON whose member "sealed" holds it
}

// Purposes for which rooms seal what the database keeps: each is part of the seal.

func PurposePayments(account string) string { return "payment account " + account }
func PurposeCalendar(account string) string { return "calendar account " + account }
func PurposeLetter(meeting string) string   { return "meeting letter " + meeting }
func PurposeOrder(id string) string         { return "order " + id } // of an order or a checkout
func PurposeCertificate(name string) string { return "certificate " + name }
func PurposePush(k PushKey) string {
	return fmt.Sprint("exchange push ", k.ThreadID, " ", k.First, " ", k.ID)
}

// PurposeRoom begins the purposes of rooms, PurposeSecret is that of a secret of the node, and PurposeAgentKey that of a key of a profile.
const PurposeRoom = "room "

func PurposeSecret(name string) string                 { return "secret " + name }
func PurposeAgentKey(handle, thumbprint string) string { return "agent " + handle + " " + thumbprint }

func ofRoom(purpose func(string) string) func([]any) string {
	return func(key []any) string { return PurposeRoom + purpose(fmt.Sprint(key[0])) }
}

// sealedColumns are all that is sealed with the master key, with the purposes for which it is: those of the rooms begin with "room".
var sealedColumns = []sealedColumn{
	{table: "secret", column: "value", key: []string{"name"}, where: `name NOT LIKE '` + settingPrefix + `%'`,
		purpose: func(key []any) string { return PurposeSecret(key[0].(string)) }},
	{table: "agent_key", column: "sealed", key: []string{"thumbprint", "handle"},
		purpose: func(key []any) string { return PurposeAgentKey(key[1].(string), key[0].(string)) }},
	{table: "payment_account", column: "sealed", key: []string{"id"}, purpose: ofRoom(PurposePayments)},
	{table: "calendar_account", column: "sealed", key: []string{"id"}, purpose: ofRoom(PurposeCalendar)},
	{table: "meeting_letter", column: "sealed", key: []string{"id"}, purpose: ofRoom(PurposeLetter)},
	{table: "shop_order", column: "sealed", key: []string{"id"}, purpose: ofRoom(PurposeOrder)},
	{table: "checkout", column: "sealed", key: []string{"id"}, purpose: ofRoom(PurposeOrder)},
	{table: "certificate", column: "sealed", key: []string{"name"}, purpose: ofRoom(PurposeCertificate)},
	{table: "acme_challenge", column: "sealed", key: []string{"key"}, purpose: ofRoom(PurposeCertificate)},
	{table: "exchange_push", column: "doc", key: []string{"thread_id", "first", "id"}, document: true,
		purpose: func(key []any) string {
			return PurposeRoom + PurposePush(PushKey{ThreadID: key[0].(string), First: int(key[1].(int64)), ID: key[2].(string)})
		}},
}

const resealRows = 200

// Reseal gives everything that is sealed with the master key to a function, and stores what it returns instead; nil leaves it. Each
// some rows are one transaction, so that one that is interrupted has done a part. It returns how many were stored anew and how many there are.
func (db *DB) Reseal(ctx context.Context, again func(purpose string, sealed []byte) ([]byte, error)) (changed, all int, err error) {
	for _, c := range sealedColumns {
		for after := []any(nil); ; {
			var n, of int
			if err := db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
				var last []any
				if n, of, last, err = c.reseal(ctx, tx, after, again); err == nil && of > 0 {
					after = last
				}
				return err
			}); err != nil {
				return changed, all, fmt.Errorf("%s: %w", c.table, err)
			}
			changed, all = changed+n, all+of
			if of < resealRows {
				break
			}
		}
	}
	return changed, all, nil
}

func (c *sealedColumn) reseal(ctx context.Context, tx *Tx, after []any, again func(string, []byte) ([]byte, error)) (changed, of int, last []any, err error) {
	key := strings.Join(c.key, ", ")
	query := `SELECT ` + key + `, ` + c.column + ` FROM ` + c.table + ` WHERE ` + c.column + ` IS NOT NULL`
	if c.where != "" {
		query += ` AND ` + c.where
	}
	if after != nil {
		query += ` AND (` + key + `) > (` + marks(len(c.key)) + `)`
	}
	rows, err := tx.query(ctx, query+fmt.Sprintf(` ORDER BY %s LIMIT %d`, key, resealRows), after...)
	found, err := collect(rows, err, func(s scanner) (row []any, err error) {
		row = make([]any, len(c.key)+1)
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		return row, s.Scan(into...)
	})
	for _, row := range found {
		if err == nil {
			var did bool
			if last = row[:len(c.key)]; len(row) > 0 {
				did, err = c.resealRow(ctx, tx, last, row[len(c.key)], again)
			}
			if did {
				changed++
			}
		}
	}
	return changed, len(found), last, err
}

func (c *sealedColumn) resealRow(ctx context.Context, tx *Tx, key []any, value any, again func(string, []byte) ([]byte, error)) (bool, error) {
	doc := map[string]json.RawMessage{}
	var sealed []byte
	switch v := value.(type) {
	case []byte:
		sealed = v
	case string: // of a document
		if err := json.Unmarshal([]byte(v), &doc); err != nil {
			return false, err
		}
		if doc["sealed"] == nil {
			return false, nil
		}
		if err := json.Unmarshal(doc["sealed"], &sealed); err != nil {
			return false, err
		}
	}
	if len(sealed) == 0 {
		return false, nil
	}
	fresh, err := again(c.purpose(key), sealed)
	if err != nil || fresh == nil {
		return false, err
	}
	var stored any = fresh
	if c.document {
		if doc["sealed"], err = json.Marshal(fresh); err != nil {
			return false, err
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			return false, err
		}
		stored = string(raw)
	}
	return true, one(tx.write(ctx, `UPDATE `+c.table+` SET `+c.column+` = ? WHERE (`+strings.Join(c.key, ", ")+`) = (`+marks(len(c.key))+`)`,
		append([]any{stored}, key...)...))
}

// Alone opens a database that no process serves, and lets none serve it until do has returned.
func Alone(ctx context.Context, c Config, do func(db *DB) error) error {
	db, err := openAlone(ctx, c, true)
	if err != nil {
		return err
	}
	err = db.alone(ctx, func() error { return do(db) })
	if closed := db.Close(); err == nil {
		err = closed
	}
	return err
}
