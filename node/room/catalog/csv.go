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
	"unicode/utf8"

	"stoa/protocol"
)

// columns are the columns of a CSV file. Those of a variant say what the row's variant has when the
// row has values of options, and otherwise what the item has. json has a whole item that the others
// cannot express, as put_item takes it.
var columns = []string{
	"sku", "name", "description", "price", "list_price", "currency", "unit", "category", "categories", "tags", "availability", "barcode", "image", "media", "url",
	"measure", "reference", "variant_sku", "option1_name", "option1_value", "option2_name", "option2_value", "option3_name", "option3_value",
	"option4_name", "option4_value", "option5_name", "option5_value", "json",
}

// maxRowOptions is how many options a row can have.
const maxRowOptions = 5

// A row is a line of a CSV file by column.
type row map[string]string

// eachCSV reads a header, and the items below it. Rows of one SKU that follow each other are
// variants of one item, whose texts are in the first.
func (f *file) eachCSV(one item) error {
	r := csv.NewReader(f.r)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	if head, err := f.r.Peek(f.r.Buffered()); err == nil {
		first, _, _ := strings.Cut(string(head), "\n")
		for _, comma := range []rune{';', '\t'} {
			if strings.Count(first, string(comma)) > strings.Count(first, ",") {
				r.Comma = comma
			}
		}
	}
	r.TrimLeadingSpace = r.Comma != '\t' // which is a space: it would join empty cells
	head, err := r.Read()
	if err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "the first line is not a header of CSV: %w", err)
	}
	names := make([]string, len(head))
	for n, name := range head {
		names[n] = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	}
	if f.dialect = dialectOf(names); f.dialect != nil {
		f.format, f.columns = f.dialect.name, f.dialect.uses(names)
		return f.eachRow(r, names, one)
	}
	for n, name := range head {
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
				[]protocol.Fault{{Code: "wrong-shape", Detail: "is not a line of CSV: a quotation mark is missing, or is one too many"}}) {
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
		if n := slices.IndexFunc(record, func(cell string) bool { return !utf8.ValidString(cell) }); n >= 0 { // JSON would hide it
			if !flush() || !one(line, protocol.ItemDraft{}, []protocol.Fault{{Code: "wrong-shape", Detail: notUTF8}}) {
				return nil
			}
			continue
		}
		cells, size := row{}, 0
		for n, cell := range record {
			if cell = unguarded(strings.TrimSpace(cell)); cell != "" && names[n] != "" && (f.dialect == nil || f.dialect.columns[names[n]] != "") {
				cells[names[n]] = strings.Clone(cell)
				size += len(cell)
			}
		}
		if len(cells) > 0 && f.dialect != nil {
			cells = f.translate(cells)
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
	if rows[0]["json"] != "" {
		return f.ofJSON(rows)
	}
	if f.dialect != nil {
		rows = pictured(rows)
	}
	i, faults := members(rows)
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

// ofJSON is the item of a row that has it as JSON. Beside it the row has sku and name only, which
// say what it is.
func (f *file) ofJSON(rows []row) (protocol.ItemDraft, []protocol.Fault) {
	if len(rows[0]["json"]) > protocol.MaxItemBytes {
		return protocol.ItemDraft{}, []protocol.Fault{tooLong}
	}
	d, faults := f.draft([]byte(rows[0]["json"]))
	if len(rows) > 1 {
		faults = append(faults, protocol.Fault{Pointer: "/sku", Code: "repeated", Detail: "the next line has this sku too"})
	}
	for _, name := range columns[:len(columns)-1] {
		is := map[string]string{"sku": d.SKU, "name": d.Name}[name]
		if has := rows[0][name]; has != "" && has != is && len(faults) == 0 {
			faults = append(faults, protocol.Fault{Pointer: "/" + name, Code: "not-the-same", Detail: "the column json has the whole item; change it there"})
		}
	}
	return d, faults
}

// members are the members of an item of rows of one SKU.
func members(rows []row) (i map[string]any, faults []protocol.Fault) {
	first := rows[0]
	i = map[string]any{"sku": first["sku"]}
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
	valued := false // the first row is a variant
	for n := 1; n <= maxRowOptions && first[optionName(n)] != ""; n++ {
		options = append(options, map[string]any{"name": first[optionName(n)], "values": []string{}})
		valued = valued || first[optionValue(n)] != ""
	}
	if len(options) == 0 || !valued && len(rows) > 1 {
		faults = append(faults, priced(i, first)...)
	}
	switch {
	case len(options) == 0 && len(rows) > 1:
		faults = append(faults, protocol.Fault{Pointer: "/sku", Code: "repeated",
			Detail: "the next line has this sku too; lines of one item name its options in option1_name and option1_value"})
	case len(options) > 0:
		if !valued && len(rows) > 1 {
			rows = rows[1:]
		}
		var variants []any
		for _, r := range rows {
			v, wrong := variant(r, options)
			variants, faults = append(variants, v), append(faults, wrong...)
		}
		i["options"], i["variants"] = options, variants
	}
	return i, faults
}

func optionName(n int) string  { return "option" + strconv.Itoa(n) + "_name" }
func optionValue(n int) string { return "option" + strconv.Itoa(n) + "_value" }

// variant is the variant of a row. It adds the values that the row is the first to have.
func variant(r row, options []map[string]any) (map[string]any, []protocol.Fault) {
	v := map[string]any{}
	labels := make([]string, len(options))
	for n := range options {
		labels[n] = r[optionValue(n+1)]
		if values := options[n]["values"].([]string); !slices.Contains(values, labels[n]) {
			options[n]["values"] = append(values, labels[n])
		}
	}
	if v["options"] = labels; r["variant_sku"] != "" {
		v["sku"] = r["variant_sku"]
	}
	return v, priced(v, r)
}

// priced sets what an item or a variant has of its row.
func priced(to map[string]any, r row) (faults []protocol.Fault) {
	currency := r["currency"]
	if currency == "" {
		currency = protocol.Rupee
	}
	currency = strings.ToUpper(currency)
	for _, names := range [][2]string{{"price", "price"}, {"list_price", "listPrice"}} {
		amount, fault := protocol.ReadAmount(currency, r[names[0]])
		if fault != nil {
			faults = append(faults, protocol.Fault{Pointer: "/" + names[1] + fault.Pointer, Code: fault.Code, Detail: fault.Detail})
		} else if amount != "" {
			to[names[1]] = map[string]any{"currency": currency, "amount": amount}
		}
	}
	for _, name := range []string{"availability", "barcode"} {
		if r[name] != "" {
			to[name] = r[name]
		}
	}
	if r["measure"] == "" && r["reference"] == "" {
		return faults
	}
	unit := map[string]any{}
	for _, name := range []string{"measure", "reference"} {
		number, of, _ := strings.Cut(r[name], " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return append(faults, protocol.Fault{Pointer: "/unitPrice/" + name, Code: "wrong-shape",
				Detail: `must be a whole number and a unit, such as "750 ml"; measure and reference go together`})
		}
		unit[name] = map[string]any{"value": n, "unit": strings.TrimSpace(of)}
	}
	to["unitPrice"] = unit
	return faults
}

func parts(s, by string) (list []string) {
	for part := range strings.SplitSeq(s, by) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
