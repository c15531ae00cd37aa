package activity

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
