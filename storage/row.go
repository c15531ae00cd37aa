package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// A row is a struct whose exported members are its columns: BidAt is bid_at. The tag db gives another name,
// or "-" for a member that is no column, and after a comma what is special:
//
//	null  the zero value is stored as NULL
//	auto  the database sets it: no insert writes it
//	read  it is not of the table, but of a query with other ones
//	blob  text that is stored as bytes
//	text  bytes that are stored as text
//
// Times are milliseconds, 0 for the zero time; arrays of bytes are bytes; any other struct, slice or map is JSON. The members of
// an embedded struct are columns of the row, unless a tag names the column that has it as JSON. A type with
// Scan and Value (database/sql) decides by itself. A result is read by the names of its columns; one that is not a struct
// has one column.

// A form is how a value is stored.
type form int

const (
	storedPlain    form = iota // as the driver has it
	storedTime                 // milliseconds
	storedDocument             // JSON
	storedValue                // plain, and NULL is the zero value
	storedArray                // bytes
)

// A member is a column in the struct of its row.
type member struct {
	column           string
	index            []int
	form             form
	null, blob, text bool
	auto, read       bool
}

// A shape is how the rows of a type are stored.
type shape struct {
	members []*member // of a struct
	form    form      // of a type that is one column
	cells   int       // members that are scanned by a cell
	loaded  bool      // it has the method of loader
}

// A loader completes a row that was read.
type loader interface{ loaded() }

// shapes caches the shape of each type that was used.
var shapes sync.Map // of *shape by reflect.Type

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{form: formOf(t)}
	if s.form == storedDocument && t.Kind() == reflect.Struct {
		s.add(t, nil)
		s.loaded = reflect.PointerTo(t).Implements(reflect.TypeFor[loader]())
	}
	shapes.Store(t, s)
	return s
}

// add adds the members of a struct. A member hides those of embedded structs that have its column.
func (s *shape) add(t reflect.Type, index []int) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("db"), ",")
		f.Index = append(slices.Clip(index), i)
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, f)
			continue
		case !f.IsExported() && f.Tag.Get("db") != "":
			panic("storage: the column " + name + " of " + t.String() + " is not exported")
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = columnName(f.Name)
		}
		if s.member(name) != nil {
			continue
		}
		m := &member{column: name, index: f.Index, form: formOf(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			m.null, m.auto = m.null || option == "null", m.auto || option == "auto"
			m.blob, m.text, m.read = m.blob || option == "blob", m.text || option == "text", m.read || option == "read"
		}
		if k := f.Type.Kind(); m.null && m.form == storedPlain && k != reflect.Slice && k != reflect.Pointer {
			m.form = storedValue
		}
		if s.members = append(s.members, m); m.form != storedPlain {
			s.cells++
		}
	}
	for _, f := range embedded {
		s.add(f.Type, f.Index)
	}
}

func (s *shape) member(column string) *member {
	for _, m := range s.members {
		if m.column == column {
			return m
		}
	}
	return nil
}

// of returns the member's value in a row.
func (m *member) of(row reflect.Value) reflect.Value {
	if len(m.index) == 1 {
		return row.Field(m.index[0])
	}
	return row.FieldByIndex(m.index)
}

func formOf(t reflect.Type) form {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]()):
		return storedPlain
	case t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[*time.Time]():
		return storedTime
	}
	switch t.Kind() {
	case reflect.Array:
		return storedArray
	case reflect.Struct, reflect.Map:
		return storedDocument
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return storedDocument
		}
	case reflect.Pointer:
		return formOf(t.Elem())
	}
	return storedPlain
}

// columnName is the name of a member in lower case, with an underscore between its words.
func columnName(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || next) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// A reader reads the rows of one result.
type reader struct {
	shape   *shape
	members []*member // of the columns; empty for a type that is one column
	dest    []any
	cells   []cell
}

// newReader returns the reader of a result as values of a type.
func newReader(rows *sql.Rows, t reflect.Type) (r reader, err error) {
	s := shapeOf(t)
	r = reader{shape: s, members: s.members, dest: make([]any, max(1, len(s.members)))}
	if len(s.members) == 0 {
		return r, nil
	}
	names, err := rows.Columns()
	if err != nil || slices.EqualFunc(names, s.members, func(name string, m *member) bool { return name == m.column }) {
		return r, err
	}
	r.members, r.dest = make([]*member, len(names)), make([]any, len(names))
	for i, name := range names {
		if r.members[i] = s.member(name); r.members[i] == nil {
			return r, fmt.Errorf("storage: %v has no member for the column %s", t, name)
		}
	}
	return r, nil
}

// read reads the current row into a value, which is a pointer.
func (r *reader) read(rows *sql.Rows, into any) error {
	v := reflect.ValueOf(into).Elem()
	if r.cells == nil {
		r.cells = make([]cell, 0, max(1, r.shape.cells))
	}
	r.cells = r.cells[:0]
	if len(r.members) == 0 {
		r.dest[0] = r.target(v, r.shape.form)
	}
	for i, m := range r.members {
		r.dest[i] = r.target(m.of(v), m.form)
	}
	if err := rows.Scan(r.dest...); err != nil {
		return err
	}
	if r.shape.loaded {
		into.(loader).loaded()
	}
	return nil
}

func (r *reader) target(v reflect.Value, f form) any {
	to := v.Addr().Interface()
	if f == storedPlain {
		return to
	}
	r.cells = append(r.cells, cell{to, f})
	return &r.cells[len(r.cells)-1]
}

// A cell scans a column into a value whose form the driver does not know.
type cell struct {
	to   any
	form form
}

// Scan reads what a driver returns for a column: an int64, a text or bytes.
func (c *cell) Scan(from any) error {
	v := reflect.ValueOf(c.to).Elem()
	switch from := from.(type) {
	case nil:
		v.SetZero()
		return nil
	case int64:
		switch to := c.to.(type) {
		case *time.Time:
			*to = moment(from)
			return nil
		case **time.Time:
			*to = momentPtr(&from)
			return nil
		}
		if v.CanInt() {
			v.SetInt(from)
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(from)
			return nil
		}
		return c.Scan([]byte(from))
	case []byte:
		switch {
		case c.form == storedDocument:
			return json.Unmarshal(from, c.to)
		case c.form == storedArray:
			v.SetZero()
			reflect.Copy(v, reflect.ValueOf(from))
			return nil
		case v.Kind() == reflect.String:
			v.SetString(string(from))
			return nil
		}
	}
	return fmt.Errorf("storage: a %T is no %v", from, v.Type())
}

// value is what is stored of a member of a row.
func (m *member) value(row reflect.Value) (any, error) {
	v := m.of(row)
	switch {
	case m.form == storedTime && v.Kind() == reflect.Pointer:
		return nilOr(millisPtr(v.Interface().(*time.Time))), nil
	case m.form == storedTime && m.null:
		return nullable(millis(v.Interface().(time.Time))), nil
	case m.form == storedTime:
		return millis(v.Interface().(time.Time)), nil
	case v.Kind() == reflect.Pointer && v.IsNil() || m.null && v.IsZero():
		return nil, nil
	case m.form == storedDocument && v.Kind() == reflect.Slice && v.IsNil():
		return "[]", nil
	case m.form == storedDocument:
		raw, err := json.Marshal(v.Interface())
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", m.column, err)
		}
		return string(raw), nil
	case m.blob:
		return []byte(v.String()), nil
	case m.text:
		return string(v.Bytes()), nil
	case v.Type().Implements(reflect.TypeFor[driver.Valuer]()):
		return v.Interface(), nil
	}
	return basic(v), nil
}

func nilOr(ms *int64) any {
	if ms == nil {
		return nil
	}
	return *ms
}

// basic is a value in a type that every driver takes.
func basic(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		return basic(v.Elem())
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int64(v.Uint())
	case reflect.Slice, reflect.Array:
		return append([]byte{}, v.Bytes()...)
	}
	return v.Interface()
}

// list reads every row of a query.
func list[T any](ctx context.Context, tx *Tx, query string, args ...any) ([]T, error) {
	items := []T{}
	err := tx.list(ctx, &items, query, args)
	return items, err
}

// list reads every row of a query into the empty list that items points to. When a row cannot be read, the list stays empty.
func (tx *Tx) list(ctx context.Context, items any, query string, args []any) error {
	rows, err := tx.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	all := reflect.ValueOf(items).Elem()
	r, err := newReader(rows, all.Type().Elem())
	if err != nil {
		return err
	}
	for n := 0; rows.Next(); n++ {
		all.Grow(1)
		all.SetLen(n + 1)
		if err := r.read(rows, all.Index(n).Addr().Interface()); err != nil {
			all.SetZero()
			return err
		}
	}
	return rows.Err()
}
