package catalog

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"stoa/protocol"
)

// columns are the columns of a CSV file. Those of a variant say what the row's variant has when the
// row has values of options, and otherwise what the item has.
var columns = []string{
	"sku", "name", "description", "price", "list_price", "currency", "unit", "category", "categories", "tags", "availability", "barcode", "image", "media", "url",
	"measure", "reference", "variant_sku", "option1_name", "option1_value", "option2_name", "option2_value", "option3_name", "option3_value",
}

// maxRowOptions is how many options a row can have.
const maxRowOptions = 3

// A row is a line of a CSV file by column.
type row map[string]string

// eachCSV reads a header, and the items below it. Rows of one SKU that follow each other are
// variants of one item, whose texts are in the first.
func (f *file) eachCSV(one item) error {
	r := csv.NewReader(f.r)
	r.ReuseRecord, r.FieldsPerRecord, r.TrimLeadingSpace = true, -1, true
	if head, err := f.r.Peek(f.r.Buffered()); err == nil {
		first, _, _ := strings.Cut(string(head), "\n")
		for _, comma := range []rune{';', '\t'} {
			if strings.Count(first, string(comma)) > strings.Count(first, ",") {
				r.Comma = comma
			}
		}
	}
	head, err := r.Read()
	if err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "the first line is not a header of CSV: %w", err)
	}
	names := make([]string, len(head))
	for n, name := range head {
		names[n] = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
		if names[n] != "" && !slices.Contains(columns, names[n]) {
			return protocol.Errorf(protocol.InvalidRequest, "there is no column %q; the columns are %s",
				protocol.CleanText(protocol.Clip(name, 60)), strings.Join(columns, ", "))
		}
		if names[n] != "" && slices.Contains(names[:n], names[n]) {
			return protocol.Errorf(protocol.InvalidRequest, "the column %s occurs twice", names[n])
		}
	}
	for _, need := range []string{"sku", "name"} {
		if !slices.Contains(names, need) {
			return protocol.Errorf(protocol.InvalidRequest, "the first line has no column %s; it names the columns: %s", need, strings.Join(columns, ", "))
		}
	}
	return f.eachRow(r, names, one)
}

func (f *file) eachRow(r *csv.Reader, names []string, one item) error {
	var rows []row
	begin := 0
	flush := func() bool {
		if len(rows) == 0 {
			return true
		}
		d, faults := f.ofRows(rows)
		rows = nil
		return one(begin, d, faults)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			flush()
			return nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			if !flush() || !one(wrong.StartLine+f.empty, protocol.ItemDraft{},
				[]protocol.Fault{{Code: "wrong-shape", Detail: "is not a line of CSV: " + wrong.Err.Error()}}) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		line += f.empty
		if len(record) > len(names) {
			if !flush() || !one(line, protocol.ItemDraft{},
				[]protocol.Fault{{Code: "too-many", Detail: fmt.Sprintf("has %d values for %d columns", len(record), len(names))}}) {
				return nil
			}
			continue
		}
		cells, size := row{}, 0
		for n, cell := range record {
			if cell = strings.TrimSpace(cell); cell != "" && names[n] != "" {
				cells[names[n]] = strings.Clone(cell)
				size += len(cell)
			}
		}
		if len(cells) == 0 {
			continue
		}
		if len(rows) > 0 && (cells["sku"] != rows[0]["sku"] || len(rows) > protocol.MaxVariants || size > protocol.MaxItemBytes) && !flush() {
			return nil
		}
		if len(rows) == 0 {
			begin = line
		}
		rows = append(rows, cells)
	}
}

// ofRows is the item of rows of one SKU.
func (f *file) ofRows(rows []row) (protocol.ItemDraft, []protocol.Fault) {
	first := rows[0]
	i := map[string]any{"sku": first["sku"]}
	var faults []protocol.Fault
	for _, name := range []string{"name", "description", "unit", "category", "image", "url"} {
		if first[name] != "" {
			i[name] = first[name]
		}
	}
	for name, split := range map[string]string{"categories": "|", "tags": "|"} {
		if list := parts(first[name], split); len(list) > 0 {
			i[name] = list
		}
	}
	var media []any
	for _, link := range parts(first["media"], "|") {
		media = append(media, map[string]any{"url": link})
	}
	if media != nil {
		i["media"] = media
	}
	var options []map[string]any
	for n := 1; n <= maxRowOptions && first["option"+strconv.Itoa(n)+"_name"] != ""; n++ {
		options = append(options, map[string]any{"name": first["option"+strconv.Itoa(n)+"_name"], "values": []string{}})
	}
	if len(options) == 0 {
		faults = append(faults, priced(i, first)...)
		if len(rows) > 1 {
			faults = append(faults, protocol.Fault{Pointer: "/sku", Code: "repeated",
				Detail: "the next line has this sku too; lines of one item name its options in option1_name and option1_value"})
		}
	} else {
		var variants []any
		for _, r := range rows {
			v := map[string]any{}
			labels := make([]string, len(options))
			for n := range options {
				labels[n] = r["option"+strconv.Itoa(n+1)+"_value"]
				if values := options[n]["values"].([]string); !slices.Contains(values, labels[n]) {
					options[n]["values"] = append(values, labels[n])
				}
			}
			if v["options"] = labels; r["variant_sku"] != "" {
				v["sku"] = r["variant_sku"]
			}
			faults = append(faults, priced(v, r)...)
			variants = append(variants, v)
		}
		i["options"], i["variants"] = options, variants
	}
	raw, err := json.Marshal(i)
	if err != nil {
		return protocol.ItemDraft{}, []protocol.Fault{{Code: "wrong-shape", Detail: "is not text"}}
	}
	if len(raw) > protocol.MaxItemBytes {
		return protocol.ItemDraft{}, []protocol.Fault{tooLong}
	}
	d, more := f.draft(raw)
	return d, append(faults, more...)
}

// priced sets what an item or a variant has of its row.
func priced(to map[string]any, r row) (faults []protocol.Fault) {
	currency := r["currency"]
	if currency == "" {
		currency = protocol.Rupee
	}
	for column, member := range map[string]string{"price": "price", "list_price": "listPrice"} {
		if r[column] != "" {
			to[member] = map[string]any{"currency": strings.ToUpper(currency), "amount": amount(r[column])}
		}
	}
	for _, name := range []string{"availability", "barcode"} {
		if r[name] != "" {
			to[name] = r[name]
		}
	}
	if r["measure"] == "" && r["reference"] == "" {
		return nil
	}
	unit := map[string]any{}
	for _, name := range []string{"measure", "reference"} {
		number, of, _ := strings.Cut(r[name], " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return []protocol.Fault{{Pointer: "/unitPrice/" + name, Code: "wrong-shape",
				Detail: `must be a whole number and a unit, such as "750 ml"; measure and reference go together`}}
		}
		unit[name] = map[string]any{"value": n, "unit": strings.TrimSpace(of)}
	}
	to["unitPrice"] = unit
	return nil
}

// amount removes what spreadsheets write around an amount of rupees: the sign, and commas between
// digits.
func amount(s string) string {
	for _, sign := range []string{"₹", "Rs.", "INR"} {
		s = strings.TrimPrefix(s, sign)
	}
	return strings.ReplaceAll(strings.TrimSpace(s), ",", "")
}

func parts(s, by string) (list []string) {
	for part := range strings.SplitSeq(s, by) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
