package storage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A batch is rows of one table, which are written in one transaction.
const (
	moveRows  = 5000
	moveBytes = 4 << 20
)

// moveBatch are rows of a table in the order of its key.
type moveBatch struct {
	table *movedTable
	rows  [][]any
}

// after is the key of the last row.
func (b *moveBatch) after() (key []any) {
	last := b.rows[len(b.rows)-1]
	for _, k := range b.table.key {
		for i, c := range b.table.columns {
			if c == k {
				key = append(key, last[i])
			}
		}
	}
	return key
}

// selects is the statement that reads a table in the order of its key, after a key if there is one.
func (t *movedTable) selects(e engine, after []any) (string, []any) {
	key := strings.Join(t.key, ", ")
	query := `SELECT ` + t.list() + ` FROM ` + t.name + t.where()
	if len(after) > 0 {
		query += ` AND (` + key + `) > (` + marks(len(t.key)) + `)`
	}
	query += ` ORDER BY ` + key
	if e == enginePostgres {
		for n := range after {
			query = strings.Replace(query, "?", fmt.Sprintf("$%d", n+1), 1)
		}
	}
	return query, after
}

// read hands on the rows of a table after a key, in batches.
func (t *movedTable) read(ctx context.Context, c *sql.Conn, e engine, after []any, hand func(*moveBatch) error) error {
	query, args := t.selects(e, after)
	b, size := &moveBatch{table: t}, 0
	err := eachRow(ctx, c, query, args, len(t.columns), func(row []any) error {
		b.rows = append(b.rows, row)
		size += 16 * len(row)
		for _, v := range row {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if len(b.rows) < moveRows && size < moveBytes {
			return nil
		}
		full := b
		b, size = &moveBatch{table: t}, 0
		return hand(full)
	})
	if err == nil && len(b.rows) > 0 {
		err = hand(b)
	}
	if err != nil {
		return fmt.Errorf("move %s: %w", t.name, err)
	}
	return nil
}

// eachRow reads a result as it comes. row belongs to the function.
func eachRow(ctx context.Context, c *sql.Conn, query string, args []any, columns int, do func(row []any) error) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	into := make([]any, columns)
	for rows.Next() {
		row := make([]any, columns)
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// write writes the rows in the running transaction of a connection.
func (b *moveBatch) write(ctx context.Context, c *sql.Conn, e engine) (err error) {
	if e == enginePostgres {
		err = b.copyIn(ctx, c)
	} else {
		err = b.insert(ctx, c)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Where != "" {
		err = fmt.Errorf("%w (%s)", err, e.Where) // the line and the column
	}
	if err != nil {
		return fmt.Errorf("move %s, rows up to %v: %w", b.table.name, b.after(), err)
	}
	return nil
}

func (b *moveBatch) insert(ctx context.Context, c *sql.Conn) error {
	s, err := c.PrepareContext(ctx, `INSERT INTO `+b.table.name+` (`+b.table.list()+`) VALUES (`+marks(len(b.table.columns))+`)`)
	if err != nil {
		return err
	}
	for _, row := range b.rows {
		if _, err := s.ExecContext(ctx, row...); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Close()
}

// copyIn sends the rows by COPY (PostgreSQL, "Binary Format" of COPY).
func (b *moveBatch) copyIn(ctx context.Context, c *sql.Conn) error {
	t, order := b.table, binary.BigEndian
	out := append([]byte("PGCOPY\n\xff\r\n\x00"), 0, 0, 0, 0, 0, 0, 0, 0) // flags, and no more of a header
	for _, row := range b.rows {
		out = order.AppendUint16(out, uint16(len(t.columns)+len(t.empty)))
		for i, v := range row {
			var err error
			if out, err = appendBinary(out, t.types[t.columns[i]], v); err != nil {
				return fmt.Errorf("%s: %w", t.columns[i], err)
			}
		}
		for range t.empty { // of words: a count of none
			out = order.AppendUint32(order.AppendUint32(out, 4), 0)
		}
	}
	out = order.AppendUint16(out, 0xffff)
	columns := append(append([]string(nil), t.columns...), t.empty...)
	return c.Raw(func(raw any) error {
		_, err := raw.(*stdlib.Conn).Conn().PgConn().CopyFrom(ctx, bytes.NewReader(out),
			`COPY `+t.name+` (`+strings.Join(columns, ", ")+`) FROM STDIN (FORMAT binary)`)
		return err
	})
}

// appendBinary appends a value of SQLite with its length as PostgreSQL has it.
func appendBinary(out []byte, of string, v any) ([]byte, error) {
	order := binary.BigEndian
	if v == nil {
		return order.AppendUint32(out, 0xffffffff), nil
	}
	switch v := v.(type) {
	case int64:
		switch of {
		case "bigint":
			return order.AppendUint64(order.AppendUint32(out, 8), uint64(v)), nil
		case "integer":
			if int64(int32(v)) == v {
				return order.AppendUint32(order.AppendUint32(out, 4), uint32(v)), nil
			}
		case "smallint":
			if int64(int16(v)) == v {
				return order.AppendUint16(order.AppendUint32(out, 2), uint16(v)), nil
			}
		case "boolean":
			if v == 0 || v == 1 {
				return append(order.AppendUint32(out, 1), byte(v)), nil
			}
		}
	case string:
		if of == "text" {
			return append(order.AppendUint32(out, uint32(len(v))), v...), nil
		}
	case []byte:
		if of == "bytea" {
			return append(order.AppendUint32(out, uint32(len(v))), v...), nil
		}
	}
	return nil, fmt.Errorf("%v is no %s", v, of)
}
