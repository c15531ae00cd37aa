package web

import (
	"github.com/a-h/templ"

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

func doors(open bool) templ.Component {
	if open {
		return worded("good", "open now")
	}
	return worded("poor", "closed now")
}

func timetable(days []day) templ.Component {
	return inside(`dl class="hours"`, forEach(days, func(d day) templ.Component {
		return inside("div", in("dt", d.Name), inside(`dd lang=""`, in("bdi", d.Hours)))
	}))
}
