package web

import (
	"stoa/protocol"
)

// A section is the items of one category, in the shop's order.
type section struct {
	Name  string
	Items []protocol.Item
}

func sectionsOf(items []protocol.Item) []section {
	var all []section
	at := map[string]int{}
	for _, i := range items {
		name := ""
		if i.Category != nil {
			name = *i.Category
		}
		n, known := at[name]
		if !known {
			n = len(all)
			at[name] = n
			all = append(all, section{Name: name})
		}
		all[n].Items = append(all[n].Items, i)
	}
	return all
}
