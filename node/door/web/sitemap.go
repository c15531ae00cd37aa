package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

func (s *Web) siteMap(r *http.Request) (view, error) {
	if err := bare(r); err != nil {
		return view{}, err
	}
	m, err := read(s, r, protocol.GetSiteMap, protocol.None{})
	if err != nil {
		return view{}, err
	}
	return view{
		Title: tr(r.Context(), "Site map"), Description: tr(r.Context(), "Every public page, endpoint and file of this node."),
		Data: m, Body: siteMapPage(m),
	}, nil
}

// ofKind selects the entries of one kind; endpoints are sorted by path.
func ofKind(m protocol.SiteMap, kind string) []protocol.SiteEntry {
	var found []protocol.SiteEntry
	for _, e := range m.Items {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	if kind == "endpoint" {
		sorting.Stable(found, func(a, b protocol.SiteEntry) int { return cmp.Compare(a.Path, b.Path) })
	}
	return found
}

// opens reports whether an entry is a link that can be opened as it is.
func opens(e protocol.SiteEntry) bool {
	return e.Method == http.MethodGet && e.Kind != "endpoint" && !strings.Contains(e.Path, "{")
}

// allCodes returns every error code, by status and name.
func allCodes() []protocol.Code {
	return slices.SortedFunc(slices.Values(protocol.Codes()), func(a, b protocol.Code) int {
		return cmp.Or(cmp.Compare(a.Status(), b.Status()), cmp.Compare(a, b))
	})
}

func siteMapPage(m protocol.SiteMap) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return all{
			inside(`div class="lead"`, title("Site map"), para("Every public page, endpoint and file of this node, with what each is for.")),
			entries(tr(ctx, "Pages"), "pages", ofKind(m, "page")),
			entries(tr(ctx, "Endpoints"), "endpoints", ofKind(m, "endpoint")),
			entries(tr(ctx, "Files"), "files", ofKind(m, "file")),
			titled("codes", "Error codes", codeList("")),
		}
	})
}
