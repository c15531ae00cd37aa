package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// A MovedTable is what one side has of a table: its rows, and a hash that is the same on both engines and does not rest on
// the order of the rows. It is the sum of the SHA-256 of each row, as four numbers of 64 bits.
type MovedTable struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Hash  string `json:"hash"`
}

// canonical appends a row as both engines have it: its values by the names of their columns, each with its kind and length.
func canonical(out []byte, row []any) ([]byte, error) {
	order := binary.BigEndian
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			out = append(out, 0)
		case bool:
			n := uint64(0)
			if v {
				n = 1
			}
			out = order.AppendUint64(append(out, 'i'), n)
		case int64:
			out = order.AppendUint64(append(out, 'i'), uint64(v))
		case string:
			out = append(order.AppendUint32(append(out, 't'), uint32(len(v))), v...)
		case []byte:
			out = append(order.AppendUint32(append(out, 'b'), uint32(len(v))), v...)
		default:
			return nil, fmt.Errorf("a value of type %T", v)
		}
	}
	return out, nil
}

// hashTold is how often the progress of a hash is told, in rows.
const hashTold = 10_000

// hash reads a table. each is told how many rows more were read.
func (t *movedTable) hash(ctx context.Context, c *sql.Conn, each func(rows int64)) (m MovedTable, err error) {
	var sum [4]uint64
	var buf []byte
	m.Table = t.name
	err = eachRow(ctx, c, `SELECT `+t.list()+` FROM `+t.name+t.where(), nil, len(t.columns), func(row []any) (err error) {
		if buf, err = canonical(buf[:0], row); err != nil {
			return err
		}
		if m.Rows++; m.Rows%hashTold == 0 {
			each(hashTold)
		}
		h := sha256.Sum256(buf)
		for i := range sum {
			sum[i] += binary.BigEndian.Uint64(h[8*i:])
		}
		return nil
	})
	each(m.Rows % hashTold)
	var raw []byte
	for _, n := range sum {
		raw = binary.BigEndian.AppendUint64(raw, n)
	}
	m.Hash = hex.EncodeToString(raw)
	if err != nil {
		err = fmt.Errorf("hash %s: %w", t.name, err)
	}
	return m, err
}

// firstDifference compares the rows of a table by key, and describes the first that is not the same on both sides.
func (t *movedTable) firstDifference(ctx context.Context, sides [2]*sql.Conn, of [2]engine) (string, error) {
	var fail [2]error
	next := [2]func() ([]any, bool){}
	for i, c := range sides {
		rows, stop := iter.Pull(t.inOrder(ctx, c, of[i], &fail[i]))
		defer stop()
		next[i] = rows
	}
	for {
		a, inA := next[0]()
		b, inB := next[1]()
		if err := errors.Join(fail[:]...); err != nil || !inA && !inB {
			return "", err
		}
		var raw [2][]byte
		for i, row := range [][]any{a, b} {
			var err error
			if raw[i], err = canonical(nil, row); err != nil {
				return "", err
			}
		}
		if inA && inB && bytes.Equal(raw[0], raw[1]) {
			continue
		}
		n := len(t.key)
		switch order := bytes.Compare(t.place(a, inA, n), t.place(b, inB, n)); {
		case order < 0:
			return t.named(a) + " is in the source only", nil
		case order > 0:
			return t.named(b) + " is in the target only", nil
		}
		return t.named(a) + " is not the same", nil
	}
}

// place is the key of a row as it is ordered; of no row, after every key.
func (t *movedTable) place(row []any, is bool, n int) (out []byte) {
	if !is {
		return bytes.Repeat([]byte{0xff}, 16)
	}
	for _, v := range row[:n] {
		switch v := v.(type) {
		case int64:
			out = binary.BigEndian.AppendUint64(append(out, 1), uint64(v)^1<<63)
		case bool:
			n := uint64(1) << 63
			if v {
				n++
			}
			out = binary.BigEndian.AppendUint64(append(out, 1), n)
		case string:
			out = append(append(append(out, 2), v...), 0)
		case []byte:
			out = append(append(append(out, 3), v...), 0)
		}
	}
	return out
}

func (t *movedTable) named(row []any) string {
	var parts []string
	for i, k := range t.key {
		if raw, ok := row[i].([]byte); ok {
			row[i] = hex.EncodeToString(raw)
		}
		parts = append(parts, fmt.Sprintf("%s = %v", k, row[i]))
	}
	return "the row of " + t.name + " with " + strings.Join(parts, ", ")
}

// inOrder are the rows of a table by key, as bytes order texts, with the key first.
func (t *movedTable) inOrder(ctx context.Context, c *sql.Conn, e engine, fail *error) iter.Seq[[]any] {
	key := append([]string(nil), t.key...)
	if e == enginePostgres {
		for i, k := range key {
			if t.types[k] == "text" {
				key[i] += ` COLLATE "C"`
			}
		}
	}
	stopped := errors.New("stopped")
	return func(yield func([]any) bool) {
		err := eachRow(ctx, c, `SELECT `+strings.Join(t.key, ", ")+`, `+t.list()+` FROM `+t.name+t.where()+` ORDER BY `+strings.Join(key, ", "), nil,
			len(t.key)+len(t.columns), func(row []any) error {
				if !yield(row) {
					return stopped
				}
				return nil
			})
		if err != nil && err != stopped {
			*fail = err
		}
	}
}
