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
	members []member // of a struct
	form    form     // of a type that is one column
	loaded  bool     // it has the method of loader
}

// A loader completes a row that was read.
type loader interface{ loaded() }

// shapes are those of the types that were used, as encoding/json has them.
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
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = columnName(f.Name)
		}
		if s.member(name) != nil {
			continue
		}
		m := member{column: name, index: f.Index, form: formOf(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			m.null, m.auto = m.null || option == "null", m.auto || option == "auto"
			m.blob, m.text, m.read = m.blob || option == "blob", m.text || option == "text", m.read || option == "read"
		}
		if k := f.Type.Kind(); m.null && m.form == storedPlain && k != reflect.Slice && k != reflect.Pointer {
			m.form = storedValue
		}
		s.members = append(s.members, m)
	}
	for _, f := range embedded {
		s.add(f.Type, f.Index)
	}
}

func (s *shape) member(column string) *member {
	for i := range s.members {
		if s.members[i].column == column {
			return &s.members[i]
		}
	}
	return nil
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
	members []*member // of the columns; nil for a type that is one column
	dest    []any
	cells   []cell
}

// newReader returns the reader of a result as values of a type.
func newReader(rows *sql.Rows, t reflect.Type) (*reader, error) {
	r := &reader{shape: shapeOf(t)}
	if len(r.shape.members) == 0 {
		r.dest, r.cells = make([]any, 1), make([]cell, 1)
		return r, nil
	}
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	r.members, r.dest, r.cells = make([]*member, len(names)), make([]any, len(names)), make([]cell, len(names))
	for i, name := range names {
		if i < len(r.shape.members) && r.shape.members[i].column == name { // as table.columns has them
			r.members[i] = &r.shape.members[i]
		} else if r.members[i] = r.shape.member(name); r.members[i] == nil {
			return nil, fmt.Errorf("storage: %v has no member for the column %s", t, name)
		}
	}
	return r, nil
}

// read reads the present row into a value, which is a pointer.
func (r *reader) read(rows *sql.Rows, into any) error {
	v := reflect.ValueOf(into).Elem()
	if r.members == nil {
		r.set(0, v, r.shape.form)
	}
	for i, m := range r.members {
		r.set(i, v.FieldByIndex(m.index), m.form)
	}
	if err := rows.Scan(r.dest...); err != nil {
		return err
	}
	if r.shape.loaded {
		into.(loader).loaded()
	}
	return nil
}

func (r *reader) set(i int, v reflect.Value, f form) {
	if f == storedPlain {
		r.dest[i] = v.Addr().Interface()
		return
	}
	r.cells[i] = cell{v, f}
	r.dest[i] = &r.cells[i]
}

// A cell is where a value is read to that the driver does not have in its form.
type cell struct {
	to   reflect.Value
	form form
}

// Scan reads what a driver has of a column: an int64, a text or bytes.
func (c *cell) Scan(from any) error {
	if from == nil {
		c.to.SetZero()
		return nil
	}
	n, isNumber := from.(int64)
	raw, isBytes := from.([]byte)
	if text, ok := from.(string); ok {
		raw, isBytes = []byte(text), true
	}
	switch {
	case isNumber && c.form == storedTime && c.to.Kind() == reflect.Pointer:
		c.to.Set(reflect.ValueOf(momentPtr(&n)))
	case isNumber && c.form == storedTime:
		*c.to.Addr().Interface().(*time.Time) = moment(n)
	case isNumber && c.to.CanInt():
		c.to.SetInt(n)
	case isNumber && c.to.CanUint():
		c.to.SetUint(uint64(n))
	case isBytes && c.form == storedDocument:
		return json.Unmarshal(raw, c.to.Addr().Interface())
	case isBytes && c.form == storedArray:
		c.to.SetZero()
		reflect.Copy(c.to, reflect.ValueOf(raw))
	case isBytes && c.to.Kind() == reflect.String:
		c.to.SetString(string(raw))
	default:
		return fmt.Errorf("storage: a %T is no %v", from, c.to.Type())
	}
	return nil
}

// value is what is stored of a member of a row.
func (m *member) value(row reflect.Value) (any, error) {
	v := row.FieldByIndex(m.index)
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
	rows, err := tx.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r, err := newReader(rows, reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	items := []T{}
	for rows.Next() {
		var item T
		if err := r.read(rows, &item); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, rows.Err()
}
