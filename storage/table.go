package storage

import (
	"context"
	"database/sql"
	"math"
	"reflect"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/storage/commit"
)

// find reads the first row of a query; ErrNotFound when there is none.
func find[T any](ctx context.Context, tx *Tx, query string, args ...any) (T, error) {
	return findIn[T](tx.row(ctx, query, args...))
}

func findIn[T any](row commit.Row) (v T, err error) {
	err = row.Read(into(&v))
	return v, err
}

// into reads a row into a value, which is a pointer.
func into(v any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		r, err := newReader(rows, reflect.TypeOf(v).Elem())
		if err != nil {
			return err
		}
		return r.read(rows, v)
	}
}

// findLocked is find for one row, which is locked in a writing transaction: what is decided by it stays valid.
func findLocked[T any](ctx context.Context, tx *Tx, query string, args ...any) (v T, err error) {
	if tx.writes() {
		if err := tx.dirty(); err != nil {
			return v, err
		}
		query += tx.db.engine.ForUpdate()
	}
	return find[T](ctx, tx, query, args...)
}

// orZero makes the absence of a row the zero value.
func orZero[T any](v T, err error) (T, error) { return v, orNothing(err) }

// pointer is the address of a row that was read, of an empty one with an error.
func pointer[T any](v T, err error) (*T, error) { return &v, err }

// orNil is pointer, nil with an error.
func orNil[T any](v T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// exists reports whether a query has a row.
func (tx *Tx) exists(ctx context.Context, query string, args ...any) (bool, error) {
	err := tx.row(ctx, query, args...).Read(func(*sql.Rows) error { return nil })
	return err == nil, orNothing(err)
}

// newest reads a page of a listing that is ordered by a column, which begins with the greatest value. The query ends with the
// condition that the column is less than a value, and a limit; args are those before.
func newest[T any](ctx context.Context, tx *Tx, listing, column string, limit int, after, query string, args ...any) (protocol.Page[T], error) {
	limit = bounded(limit)
	m := shapeOf(reflect.TypeFor[T]()).member(column)
	place := func(row *T) reflect.Value { return m.of(reflect.ValueOf(row).Elem()) }
	var before any
	var err error
	if place(new(T)).Kind() == reflect.String {
		before, err = positionID(listing, after)
	} else {
		before, err = position(listing, after, math.MaxInt64)
	}
	if err != nil {
		return protocol.Page[T]{}, err
	}
	found, err := list[T](ctx, tx, query, append(slices.Clip(args), before, limit+1)...)
	return page(found, limit, listing, func(row T) string {
		if v := place(&row); v.CanInt() {
			return number(v.Int())
		}
		return place(&row).String()
	}), err
}

// A table is where the rows of a type are stored. What does not depend on the type is stored's, so that the program has it once.
type table[T any] struct{ *stored }

type stored struct {
	name    string
	columns string // of the type, for a SELECT
	from    string // SELECT columns FROM name
	shape   *shape
}

func tableOf[T any](name string) table[T] { return table[T]{newStored(name, reflect.TypeFor[T]())} }

func newStored(name string, t reflect.Type) *stored {
	s := &stored{name: name, shape: shapeOf(t)}
	s.columns = s.columnsOf("")
	s.from = "SELECT " + s.columns + " FROM " + name + " "
	return s
}

// columnsOf are the columns with a prefix, such as "b.".
func (s *stored) columnsOf(prefix string) string {
	var all []string
	for _, m := range s.shape.members {
		if !m.read {
			all = append(all, prefix+m.column)
		}
	}
	return strings.Join(all, ", ")
}

// statement is the INSERT of a row, with what follows its values.
func (s *stored) statement(row any, tail string) (text string, args []any, err error) {
	var names []string
	for _, m := range s.shape.members {
		if m.auto || m.read {
			continue
		}
		v, err := m.value(reflect.ValueOf(row).Elem())
		if err != nil {
			return "", nil, err
		}
		names, args = append(names, m.column), append(args, v)
	}
	return "INSERT INTO " + s.name + " (" + strings.Join(names, ", ") + ") VALUES (" + marks(len(args)) + ")" + tail, args, nil
}

func (s *stored) write(ctx context.Context, tx *Tx, row any, tail string) (int64, error) {
	text, args, err := s.statement(row, tail)
	if err != nil {
		return 0, err
	}
	return tx.write(ctx, text, args...)
}

func (s *stored) putRow(ctx context.Context, tx *Tx, row any, key string, columns []string) error {
	if len(columns) == 0 {
		columns = strings.Split(s.columns, ", ")
	}
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = excluded." + c
	}
	_, err := s.write(ctx, tx, row, " ON CONFLICT ("+key+") DO UPDATE SET "+strings.Join(set, ", "))
	return err
}

func (s *stored) updateRow(ctx context.Context, tx *Tx, row any, key string, columns []string) error {
	args := make([]any, 0, len(columns)+1)
	for _, c := range append(slices.Clip(columns), key) {
		v, err := s.shape.member(c).value(reflect.ValueOf(row).Elem())
		if err != nil {
			return err
		}
		args = append(args, v)
	}
	return one(tx.write(ctx, "UPDATE "+s.name+" SET "+strings.Join(columns, " = ?, ")+" = ? WHERE "+key+" = ?", args...))
}

// insert stores a new row.
func (t table[T]) insert(ctx context.Context, tx *Tx, row *T) error {
	_, err := t.write(ctx, tx, row, "")
	return err
}

// add stores a row, unless one of its keys is taken: then it is false.
func (t table[T]) add(ctx context.Context, tx *Tx, row *T) (bool, error) {
	n, err := t.write(ctx, tx, row, " ON CONFLICT DO NOTHING")
	return n > 0, err
}

// create stores a new row; ErrExists when one of its keys is taken.
func (t table[T]) create(ctx context.Context, tx *Tx, row *T) error {
	added, err := t.add(ctx, tx, row)
	if err == nil && !added {
		return ErrExists
	}
	return err
}

// put stores a row, or if its key exists, the given columns of it in the existing one; all of them when none is given.
func (t table[T]) put(ctx context.Context, tx *Tx, row *T, key string, columns ...string) error {
	return t.putRow(ctx, tx, row, key, columns)
}

// update stores the given columns of a row that is stored under its key; ErrNotFound when it is not.
func (t table[T]) update(ctx context.Context, tx *Tx, row *T, key string, columns ...string) error {
	return t.updateRow(ctx, tx, row, key, columns)
}
