package activity

import "strconv"

// Collection returns the head of an ordered collection; pages are linked from first.
func Collection(id string, total int, first string) Object {
	o := Object{"@context": "https://www.w3.org/ns/activitystreams", "id": id, "type": "OrderedCollection", "totalItems": total}
	if first != "" {
		o["first"] = first
	}
	return o
}

// CollectionPage returns one page; next is "" on the last.
func CollectionPage(id, of, next string, items []any) Object {
	o := Object{
		"@context": postContext, "id": id, "type": "OrderedCollectionPage", "partOf": of, "orderedItems": items,
	}
	if next != "" {
		o["next"] = next
	}
	return o
}

// LogPage returns one page of the board's log, in ascending order, beginning after entry after. It
// links the next page even when that is still empty.
func (s Site) LogPage(after int64, limit int, epoch string, head, last int64, items []any) Object {
	at := func(n int64) string {
		return s.Log() + "?after=" + strconv.FormatInt(n, 10) + "&limit=" + strconv.Itoa(limit)
	}
	return Object{
		"@context": listContext, "id": at(after), "type": "OrderedCollectionPage", "partOf": s.Log(),
		"stoa:epoch": epoch, "stoa:first": 1, "stoa:head": head, "next": at(last), "orderedItems": items,
	}
}
