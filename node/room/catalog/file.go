package catalog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"unicode/utf8"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// A file is a catalog that is read once.
type file struct {
	*Catalog
	r      *bufio.Reader
	format string // as the report says it
	empty  int    // lines before the first that has something

	dialect *dialect // of a file that is not in our own form
	columns []protocol.ColumnUse
	notes   map[string]int    // what was changed or left out, and how often
	left    string            // SKU of the product that was left out last
	parents map[string]string // SKUs of products with variations, by the ids of WooCommerce
}

// open begins to read a file. One whose first character is { is JSON Lines, [ a JSON array, < XML, any other CSV.
func (c *Catalog) open(f *os.File) (*file, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	head, err := r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the file is UTF-16; save it as UTF-8, which spreadsheets call CSV UTF-8")
	}
	if bytes.Equal(head, []byte("\xef\xbb\xbf")) { // the byte order mark that spreadsheets write
		if _, err := r.Discard(3); err != nil {
			return nil, err
		}
	}
	for empty := 0; ; {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, protocol.Errorf(protocol.InvalidRequest, "the file is empty")
		}
		if err != nil {
			return nil, err
		}
		if b == '\n' {
			empty++
		}
		if b <= ' ' {
			continue
		}
		if err := r.UnreadByte(); err != nil {
			return nil, err
		}
		formats := map[byte]string{'{': "jsonl", '[': "json", '<': googleFeed.name}
		out := &file{Catalog: c, r: r, format: cmp.Or(formats[b], "csv"), empty: empty, notes: map[string]int{}, parents: map[string]string{}}
		if b == '<' {
			out.dialect = googleFeed
		}
		return out, nil
	}
}

// An item is called for each item of a file, with the line on which it begins; it returns false to
// end the reading. A draft with faults is not to be used, but its SKU is.
type item func(line int, d protocol.ItemDraft, faults []protocol.Fault) bool

// each reads the file to its end.
func (f *file) each(one item) error {
	switch {
	case f.dialect == googleFeed:
		return f.eachXML(one)
	case f.format == "json":
		return f.eachElement(one)
	case f.format == "csv":
		return f.eachCSV(one)
	}
	for line := 1 + f.empty; ; line++ {
		raw, long, err := readLine(f.r, protocol.MaxItemBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		switch raw = bytes.TrimSpace(raw); {
		case long:
			if !one(line, protocol.ItemDraft{}, []protocol.Fault{tooLong}) {
				return nil
			}
		case len(raw) > 0:
			if d, faults := f.value(raw); !one(line, d, faults) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

const notUTF8 = "is not UTF-8; save the file as UTF-8, which spreadsheets call CSV UTF-8"

var tooLong = protocol.Fault{Code: "too-long", Detail: "an item has at most 32 KiB"}

// readLine reads a line; of one that is longer than most bytes only the end is looked for.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		long = long || len(line) > most
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

var lineLimits = strictjson.Limits{MaxBytes: protocol.MaxItemBytes, MaxDepth: 8, MaxTokens: 4096}

// draft reads one item as every door reads fresh input.
func (c *Catalog) draft(raw []byte) (d protocol.ItemDraft, faults []protocol.Fault) {
	one := func(code, detail string) (protocol.ItemDraft, []protocol.Fault) {
		return protocol.ItemDraft{}, []protocol.Fault{{Code: code, Detail: detail}}
	}
	if !utf8.Valid(raw) {
		return one("wrong-shape", notUTF8)
	}
	if err := strictjson.Check(raw, lineLimits); err != nil {
		return one("wrong-shape", "cannot be read as JSON: "+err.Error())
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil || value == nil {
		return one("wrong-type", "is not a JSON object")
	}
	faults = c.schemas.Check(c.schemas.Of(reflect.TypeFor[protocol.ItemDraft]()), value)
	if err := json.Unmarshal(raw, &d); err != nil && len(faults) == 0 {
		return one("wrong-type", "does not fit the schema of an item")
	}
	protocol.Fold(&d)
	if len(faults) == 0 {
		faults = d.Check()
	}
	return d, faults
}
