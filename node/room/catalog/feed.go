package catalog

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// maxElement bounds an element of an array and an item of a feed, which say more than an item here may.
const maxElement = 256 << 10

// eachElement reads a JSON array.
func (f *file) eachElement(one item) error {
	if _, err := f.r.ReadByte(); err != nil { // [
		return err
	}
	line := 1 + f.empty
	for {
		raw, begin, end, err := element(f.r, &line)
		if err != nil {
			return err
		}
		switch {
		case len(raw) > maxElement:
			if !one(begin, protocol.ItemDraft{}, []protocol.Fault{tooLong}) {
				return nil
			}
		case len(raw) > 0:
			if d, faults := f.value(raw); !one(begin, d, faults) {
				return nil
			}
		}
		if end {
			return nil
		}
	}
}

// element reads an element of an array up to the comma or bracket behind it; of a long one it keeps the beginning. end is true for the last.
func element(r *bufio.Reader, line *int) (raw []byte, begin int, end bool, err error) {
	depth, quoted, escaped := 0, false, false
	for {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, 0, false, protocol.Errorf(protocol.InvalidRequest, "the file ends within its array")
		}
		if err != nil {
			return nil, 0, false, err
		}
		if b == '\n' {
			*line++
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = b == '\\', b != '"'
		case b == '"':
			quoted = true
		case b == '{' || b == '[':
			depth++
		case depth > 0 && (b == '}' || b == ']'):
			depth--
		case depth == 0 && (b == ',' || b == ']'):
			return raw, begin, b == ']', nil
		}
		if len(raw) == 0 && b <= ' ' {
			continue
		}
		if len(raw) == 0 {
			begin = *line
		}
		if len(raw) <= maxElement {
			raw = append(raw, b)
		}
	}
}

// value reads an item as put_item takes it, or a product of schema.org.
func (f *file) value(raw []byte) (protocol.ItemDraft, []protocol.Fault) {
	var product struct {
		Type any `json:"@type"`
	}
	if json.Unmarshal(raw, &product) != nil || product.Type == nil {
		if len(raw) > protocol.MaxItemBytes {
			return protocol.ItemDraft{}, []protocol.Fault{tooLong}
		}
		return f.draft(raw)
	}
	if f.dialect == nil {
		f.dialect, f.format = schemaOrg, schemaOrg.name
	}
	var p map[string]any
	if err := json.Unmarshal(raw, &p); err != nil || first(p["@type"]) != "Product" {
		return protocol.ItemDraft{}, []protocol.Fault{{Pointer: "/@type", Code: "not-allowed", Detail: "must be Product; an item as put_item takes it has none"}}
	}
	return f.ofRows([]row{f.translate(productCells(p))})
}

// productCells are the cells of a product of schema.org.
func productCells(p map[string]any) row {
	offer, _ := p["offers"].(map[string]any)
	if list, ok := p["offers"].([]any); ok && len(list) > 0 {
		offer, _ = list[0].(map[string]any)
	}
	c := row{
		"name": first(p["name"]), "description": first(p["description"]), "category": first(p["category"]), "url": first(p["url"]),
		"price": first(offer["price"]), "currency": first(offer["priceCurrency"]), "availability": first(offer["availability"]),
	}
	for _, name := range []string{"sku", "productID", "mpn", "gtin13", "gtin", "gtin12", "gtin8", "name"} {
		if c["sku"] == "" {
			c["sku"] = first(p[name])
		}
		if strings.HasPrefix(name, "gtin") && c["barcode"] == "" {
			c["barcode"] = first(p[name])
		}
	}
	if c["price"] == "" {
		c["price"] = first(offer["lowPrice"])
	}
	c["image"], c["keywords"] = strings.Join(texts(p["image"]), ","), strings.Join(texts(p["keywords"]), ",")
	return c
}

// texts are the texts of a value of JSON-LD: one or several, or the names or addresses of things.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case map[string]any:
		for _, name := range []string{"@value", "url", "contentUrl", "name"} {
			if s, ok := v[name].(string); ok {
				return []string{s}
			}
		}
	case []any:
		for _, one := range v {
			list = append(list, texts(one)...)
		}
	}
	return list
}

func first(v any) string {
	if list := texts(v); len(list) > 0 {
		return list[0]
	}
	return ""
}

// A quota ends the reading of a feed one of whose items is too long.
type quota struct {
	r    io.Reader
	left int
}

var errLongItem = errors.New("an item of the feed is longer than 256 KiB")

func (q *quota) Read(p []byte) (int, error) {
	if q.left <= 0 {
		return 0, errLongItem
	}
	n, err := q.r.Read(p[:min(len(p), 4096)])
	q.left -= n
	return n, err
}

// eachXML reads a feed in RSS 2.0 or Atom.
func (f *file) eachXML(one item) error {
	q := &quota{f.r, maxElement}
	d := xml.NewDecoder(q)
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the file is %s; save it as UTF-8", protocol.Clip(protocol.CleanText(charset), 40))
	}
	var cells row
	var name string
	var names []string
	begin, depth := 0, 0 // of elements within an item
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			f.columns = googleFeed.uses(names)
			return nil
		}
		if _, known := errors.AsType[*protocol.Error](err); err != nil && !known {
			err = protocol.Errorf(protocol.InvalidRequest, "the feed cannot be read as XML: %w", err)
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch name = t.Name.Local; {
			case cells != nil:
				depth++
			case name == "item" || name == "entry":
				line, _ := d.InputPos()
				cells, begin, depth = row{}, line+f.empty, 0
			}
			if cells == nil || depth != 1 {
				continue
			}
			if name == "additional_image_link" && cells[name] != "" {
				cells[name] += ","
			}
			for _, a := range t.Attr { // of Atom
				if name == "link" && a.Name.Local == "href" {
					cells[name] = a.Value
				}
			}
			if len(names) < 200 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		case xml.CharData:
			if cells != nil && depth == 1 {
				cells[name] += string(t)
			}
		case xml.EndElement:
			if depth--; cells == nil || depth >= 0 {
				continue
			}
			for column, cell := range cells {
				cells[column] = strings.TrimSpace(cell)
			}
			c := f.translate(cells)
			cells, q.left = nil, maxElement
			if draft, faults := f.ofRows([]row{c}); !one(begin, draft, faults) {
				return nil
			}
		}
	}
}
