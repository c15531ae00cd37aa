package web

import (
	"context"
	"io"
	"strconv"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of a shop whose catalog is read at an address: where, how the last reading went, and a reading now.

const catalogAddressPath = itemsPath + "/address"

var addressTable = &formTable{op: protocol.PutCatalogAddress.Operation, controls: []control{
	trimmed(line("url", "Address of the file, https").with("type", "url", "required", "")),
	choose("own", "What you change here by hand", [][2]string{{protocol.OwnKeep, english("stays as you wrote it##items of a file")},
		{protocol.OwnOverwrite, english("is replaced by what the file says")}}),
	choose("mode", "Items that are not in the file any more", [][2]string{{protocol.ImportReplace, english("are taken off sale")},
		{protocol.ImportMerge, english("stay as they are##items not in the file")}}),
}}

func catalogAddressBody(a *account) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		x, f := answer(a, protocol.GetCatalogAddress), a.sent("put_catalog_address", a.Handle, "")
		at, shown := formID("put_catalog_address", a.Handle, ""), addressTable.shows(x)
		act := func(do, label string, more ...string) templ.Component {
			return posted("", "", "/account", ownKeys(do, a.Handle, ""), hidden(more...), submitsQuietly(label))
		}
		body := all{accountHead(a, "The node reads your catalog at an address of yours, every day."), when(x.URL != nil, readingNote(ctx, x))}
		if x.URL != nil {
			body = append(body, inside(`div class="send"`, act("read_catalog_address", english("Read it now")),
				when(x.Falls, act("read_catalog_address", english("Take the file as it is"), "falls", "true")),
				act("remove_catalog_address", english("End the reading; the items stay"))))
		}
		body = append(body, posted("card form", at, "/account", ownKeys("put_catalog_address", a.Handle, ""), addressTable.fields(f, at, shown), sends("Save")),
			para("The file is one that you could bring: what Shopify or WooCommerce exports, a feed for Google Merchant Center, or a table of your own."),
			ahead(shopPath(importItemsPath, a.Handle), "Bring a file instead"), ahead(shopPath(itemsPath, a.Handle), "All items"))
		return body.Render(ctx, w)
	})
}

// readingNote says how the last reading went.
func readingNote(ctx context.Context, x protocol.CatalogReading) templ.Component {
	var note all
	if x.Fault != nil {
		alert := all{markup(`<p lang="en" translate="no">%s</p>`, sentence(*x.Fault))}
		for _, l := range faultLines(ctx, x.Faults) {
			alert = append(alert, inside("p", say("Line %s: %s", l.Where, columned(l.Column, l.What))))
		}
		note = append(note, inside(`div class="alert"`, alert...))
	}
	switch {
	case x.Waiting:
		note = append(note, para("It is read in a moment; look again soon."))
	case x.ReadAt == nil && x.Fault == nil:
		note = append(note, para("It was not read yet."))
	case x.ReadAt != nil:
		note = append(note, para("Last read on %s.", hour(ctx, *x.ReadAt)))
	}
	if x.ChangedAt != nil {
		figures := all{}
		for _, n := range []importFigure{{english("Added"), x.Added}, {english("Changed"), x.Changed},
			{english("Removed"), x.Removed}, {english("Kept as you wrote them"), x.Kept}} {
			figures = append(figures, inside("div", in("dt", tr(ctx, n.what)), markup("<dd>%s</dd>", strconv.Itoa(n.n))))
		}
		note = append(note, para("What last changed, on %s:", hour(ctx, *x.ChangedAt)), inside(`dl class="hours figured"`, figures...))
	}
	return inside(`section aria-label="`+templ.EscapeString(tr(ctx, "How the last reading went"))+`"`, note...)
}

func columned(column, what string) string {
	if column == "" {
		return what
	}
	return column + ": " + what
}
