package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

// The page that imports the items of a shop from a file: checked first, with every fault by line, then
// imported; and the file of its items.

const importItemsPath = itemsPath + "/import"

// An itemsImport is an import of items, or a check of a file.
type itemsImport struct {
	protocol.ItemsImportReport
	Mode string
}

// importItemsForm checks the file of a form, or imports it.
func (s *Web) importItemsForm(w http.ResponseWriter, r *http.Request) {
	a := &account{Page: pageAt(importItemsPath)}
	form, file, err := s.uploadForm(w, r, protocol.ImportItems.Operation, "file")
	f := newSent(form)
	if f.handle == "" {
		f.handle = r.URL.Query().Get("handle")
	}
	if err == nil {
		a.Imported = &itemsImport{Mode: form.Get("mode")}
		args := f.args("handle", "mode")
		args["dryRun"] = r.URL.Query().Has("check")
		err = invokeUpload(s, r, protocol.ImportItems, args, file, &a.Imported.ItemsImportReport)
	}
	if err == nil {
		s.showAccount(w, r, a)
		return
	}
	if e := protocol.AsError(err); e.Code == protocol.Validation && strings.HasPrefix(firstPointer(e), "/lines/") { // it was not checked first
		a.Imported.ItemsImportReport = faultyImport(e)
		s.showAccount(w, r, a)
		return
	}
	s.refusedAccount(w, r, a, f, err)
}

func firstPointer(e *protocol.Error) string {
	if len(e.Faults) == 0 {
		return ""
	}
	return e.Faults[0].Pointer
}

// faultyImport is the report of an import that was refused for the faults of its file.
func faultyImport(e *protocol.Error) protocol.ItemsImportReport {
	x := protocol.ItemsImportReport{DryRun: true, FaultCount: len(e.Faults)}
	for _, f := range e.Faults {
		line, rest, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/lines/"), "/")
		if n, err := strconv.Atoi(line); err == nil {
			if rest != "" {
				rest = "/" + rest
			}
			x.Faults = append(x.Faults, protocol.LineFault{Line: n, Pointer: rest, Code: f.Code, Detail: f.Detail})
		}
	}
	return x
}

// uploadLife is how long the file of a form may take to arrive, and its answer to be made.
const uploadLife = 20 * time.Minute

// uploadForm reads the fields of a form up to its file, which is its last part. Only somebody who is
// signed in has long for it.
func (s *Web) uploadForm(w http.ResponseWriter, r *http.Request, op *protocol.Operation, field string) (url.Values, io.Reader, error) {
	if state, err := s.state(r); err == nil && state.SignedIn {
		control, until := http.NewResponseController(w), time.Now().Add(uploadLife)
		if err := errors.Join(control.SetReadDeadline(until), control.SetWriteDeadline(until)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return url.Values{}, nil, err
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, op.Upload+maxForm)
	form, file, err := fileForm(r, op, field)
	r.PostForm = form
	return form, file, err
}

// invokeUpload does an operation with the file of a form.
func invokeUpload[In, Out any](s *Web, r *http.Request, op protocol.Op[In, Out], args map[string]any, file io.Reader, into *Out) error {
	raw, err := hall.JSON(args)
	if err != nil {
		return err
	}
	res, err := s.Table.Invoke(r.Context(), hall.Request{
		Op: op.Name, Args: raw, Door: "page", Upload: file,
		Evidence: identity.Evidence{Network: s.Network(r), Session: session.Of(r, s.Base)},
	})
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return protocol.Errorf(protocol.TooLarge, "the file may have at most %d MB", op.Upload>>20)
	}
	if err != nil {
		return err
	}
	out, ok := res.Value.(Out)
	if !ok {
		return protocol.Errorf(protocol.Internal, "%s gave %T", op.Name, res.Value)
	}
	*into = out
	return nil
}

// itemsFile is the file of a shop's items.
func (s *Web) itemsFile(w http.ResponseWriter, r *http.Request) {
	res, err := s.invokeOwner(r, protocol.ExportItems.Operation, map[string]any{"handle": r.URL.Query().Get("handle")}, "")
	if protocol.CodeOf(err) == protocol.Unauthorized {
		toSignIn(w, r)
		return
	}
	if err == nil {
		err = sendFile(w, protocol.ExportItems.Operation, res)
	}
	if err != nil {
		s.Fail(w, r, err)
	}
}

// sendFile answers with the file of an operation.
func sendFile(w http.ResponseWriter, op *protocol.Operation, res hall.Result) error {
	file, ok := res.Value.(protocol.File)
	if !ok {
		return protocol.Errorf(protocol.Internal, "%s gave %T", op.Name, res.Value)
	}
	defer file.Close()
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadLife)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	head := w.Header()
	guard(head)
	head.Set("Content-Type", op.Media)
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Length", strconv.FormatInt(file.Size(), 10))
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name()}))
	io.Copy(w, file) // an error is the end of the connection
	return nil
}

// sampleCSV is the file to begin with.
const sampleCSV = "\ufeffsku,name,price,unit,category,availability,description,option1_name,option1_value\r\n" +
	"masala-dosa,Masala dosa,85,plate,Breakfast,,\"Crisp, with sambar and chutney\",,\r\n" +
	"filter-coffee,Filter coffee,25.50,cup,Drinks,out_of_stock,,,\r\n" +
	"tiffin,Tiffin,120,box,Meals,,Rice and three curries,Size,Small\r\n" +
	"tiffin,,180,,,,,,Large\r\n"

func sampleItems(w http.ResponseWriter, _ *http.Request) {
	head := w.Header()
	guard(head)
	head.Set("Content-Disposition", `attachment; filename="items.csv"`)
	send(w, http.StatusOK, protocol.ExportItems.Media, []byte(sampleCSV))
}

// csvColumns describe the columns of a file of items, those that most shops need first.
var csvColumns = [][2]string{
	{"sku", english("Your own number or name for the item, such as R-104: letters a to z, digits and . _ -. An item with the same one is changed.")},
	{"name", english("What customers read.")},
	{"price", english("In rupees, such as 85.50; empty for a price on request.")},
	{"unit", english("What the price is for, such as plate or kg.")},
	{"category", english("The group in your list.")},
	{"availability", english("in_stock, out_of_stock, preorder, backorder or discontinued; empty means in_stock.")},
	{"description", english("Plain text.")},
	{"option1_name, option1_value", english("For sizes and other kinds a line each, with one sku: Size in the first, Small or Large in each. Up to option5.")},
	{"variant_sku", english("Your own number for the kind of that line.")},
	{"list_price", english("The price before a reduction.")},
	{"currency", english("Three letters such as USD; empty means rupees.")},
	{"categories, tags", english("Other groups, and words to find it by; several are divided by |.")},
	{"image, media, url", english("Addresses that begin with https: a picture, more of them divided by |, and the item's own page.")},
	{"barcode", english("The number below the bar code.")},
	{"measure, reference", english("For comparing prices: the price is for 750 ml, compared by 100 ml.")},
	{"json", english("A whole item as programs write it. An export has it for what the other columns cannot say.")},
}

// A faultLine is a fault of a file for people.
type faultLine struct{ Where, Column, What string }

// faultLines are the faults of a file.
func faultLines(ctx context.Context, all []protocol.LineFault) []faultLine {
	out := make([]faultLine, len(all))
	for n, x := range all {
		column, kind := columnOf(x.Pointer)
		where := strconv.Itoa(x.Line)
		if kind > 0 {
			where = tr(ctx, "%s, kind %s##line of a file", where, strconv.Itoa(kind))
		}
		out[n] = faultLine{where, column, columnFault(ctx, column, x)}
	}
	return out
}

// columnOf returns the column of a fault, "" for the whole line, and which of several kinds it is about,
// from 1; 0 for the item.
func columnOf(pointer string) (column string, kind int) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	number := func(n int) int {
		if n < len(parts) {
			if i, err := strconv.Atoi(parts[n]); err == nil {
				return i + 1
			}
		}
		return 1
	}
	if parts[0] == "variants" && len(parts) > 1 {
		kind, parts = number(1), parts[2:]
		if len(parts) == 0 {
			return "", kind
		}
		switch parts[0] {
		case "options":
			return fmt.Sprintf("option%d_value", number(1)), kind
		case "sku":
			return "variant_sku", kind
		}
	}
	switch last := parts[len(parts)-1]; parts[0] {
	case "price", "listPrice":
		if last == "currency" {
			return last, kind
		}
		return cmp.Or(map[string]string{"listPrice": "list_price"}[parts[0]], parts[0]), kind
	case "unitPrice":
		if len(parts) > 1 {
			return parts[1], kind
		}
		return "measure", kind
	case "options":
		if len(parts) > 2 && parts[2] == "values" {
			return fmt.Sprintf("option%d_value", number(1)), kind
		}
		return fmt.Sprintf("option%d_name", number(1)), kind
	}
	return parts[0], kind
}

// columnRight describes a valid value of a column, where not only its length is bounded.
var columnRight = map[string]string{
	"sku":          english("a number or name of your own such as KURTA-7: letters a to z, digits and . _ -"),
	"variant_sku":  english("a number or name of your own such as KURTA-7: letters a to z, digits and . _ -"),
	"price":        english("an amount such as 85.50"),
	"list_price":   english("an amount such as 85.50"),
	"currency":     english("a currency code of three letters such as INR"),
	"availability": english("one of in_stock, out_of_stock, preorder, backorder, discontinued"),
	"tags":         english("a tag: 1 to 32 letters a to z, digits and _ . : -"),
	"image":        english("an address that begins with https://"), "media": english("an address that begins with https://"),
	"url":     english("an address that begins with https://"),
	"barcode": english("the 4 to 32 digits and letters below a bar code"),
	"measure": english("an amount such as 750 ml"), "reference": english("an amount such as 100 ml"),
}

// columnFault returns what is wrong with a column, or with a line, in plain words.
func columnFault(ctx context.Context, column string, x protocol.LineFault) string {
	switch right := columnRight[column]; {
	case x.Code == "required" && x.Detail == "is required", x.Code == "too-short":
		return tr(ctx, "Fill this in.")
	case right != "" && (slices.Contains(shapeFaults, x.Code) || x.Code == "wrong-scale"):
		return tr(ctx, "This is not %s.", tr(ctx, right))
	}
	return sentence(faultText(ctx, protocol.Fault{Code: x.Code, Detail: x.Detail}))
}

// An importFigure is how many items have been added, or would be.
type importFigure struct {
	what string
	n    int
}

// figures are what an import did, or would do.
func (x *itemsImport) figures() []importFigure {
	if x.DryRun {
		return []importFigure{{english("To add"), x.Added}, {english("To change"), x.Changed},
			{english("As they are"), x.Unchanged}, {english("To remove"), x.Removed}}
	}
	return []importFigure{{english("Added"), x.Added}, {english("Changed"), x.Changed},
		{english("As they were"), x.Unchanged}, {english("Removed"), x.Removed}}
}
