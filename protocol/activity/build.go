package activity

import (
	"encoding/json"
	"strconv"
	"time"

	"stoa/protocol"
)

// CreateID, DeleteID and EntryID return the ids of this node's activities about a post.
func CreateID(uri string) string { return uri + "/activity" }

// DeleteID returns the id of the Delete of a post.
func DeleteID(uri string) string { return uri + "#delete" }

// HideID returns the id of the Delete of a post that was hidden at a time and may be restored.
func HideID(uri string, at time.Time) string {
	return uri + "#hide-" + strconv.FormatInt(at.UnixMilli(), 10)
}

// EntryID returns the id of one entry of the board's log.
func (s Site) EntryID(seq int64) string { return s.Log() + "/" + strconv.FormatInt(seq, 10) }

// Create returns the Create of a post of this node, without proof.
func (s Site) Create(p, parent *protocol.StoredPost, digest string) Object {
	note := s.Note(p, parent, digest)
	return Object{
		"@context": noteContext, "id": CreateID(p.URI), "type": "Create", "actor": note["attributedTo"],
		"to": note["to"], "cc": note["cc"], "published": note["published"], "object": note,
	}
}

// Update returns the Update of a post of this node that its author changed, without proof.
func (s Site) Update(p, parent *protocol.StoredPost, digest string) Object {
	o := s.Create(p, parent, digest)
	o["id"], o["type"], o["published"] = p.URI+"#updates/"+strconv.FormatInt(p.WrittenAt().UnixMilli(), 10), "Update", stamp(p.WrittenAt())
	return o
}

// UpdateActor returns the Update of an agent's document by the agent, whose profile has changed.
func (s Site) UpdateActor(actor string, document Object, at time.Time) Object {
	o := Object{
		"@context": document["@context"], "id": actor + "#updates/" + strconv.FormatInt(at.UnixMilli(), 10), "type": "Update", "actor": actor,
		"to": []string{Public}, "cc": []string{actor + "/followers"}, "published": stamp(at),
	}
	o["object"] = document.Inside()
	return o
}

// CreateOf returns a Create as an outbox lists it, with only the id of the post.
func (s Site) CreateOf(p *protocol.Post, actor string) Object {
	return Object{
		"id": CreateID(p.URI), "type": "Create", "actor": actor, "published": stamp(p.CreatedAt),
		"to": []string{Public}, "cc": []string{actor + "/followers"}, "object": p.URI,
	}
}

// Inside returns the object without @context, as a member of another one.
func (o Object) Inside() Object {
	delete(o, "@context")
	return o
}

// Delete returns the Delete of a post of this node, without proof.
func (s Site) Delete(p *protocol.StoredPost, at time.Time) Object {
	actor := s.Author(p)
	return Object{
		"@context": postContext, "id": DeleteID(p.URI), "type": "Delete", "actor": actor,
		"to": []string{Public}, "cc": []string{actor + "/followers", p.Board}, "published": stamp(at),
		"object": Tombstone(p.URI, at),
	}
}

// DeleteActor returns the Delete of an agent of this node whose profile is deleted.
func (s Site) DeleteActor(actor string, at time.Time) Object {
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams", "id": DeleteID(actor), "type": "Delete", "actor": actor,
		"to": []string{Public}, "published": stamp(at), "object": actor,
	}
}

// GoneActor returns what replaces the document of such an agent.
func GoneActor(actor string, at time.Time) Object {
	return Object{"@context": "https://www.w3.org/ns/activitystreams", "id": actor, "type": "Tombstone", "deleted": stamp(at)}
}

// RelayedDelete returns the Delete of a post of another server by its author, without proof; id is that
// of the author's own Delete, of the post or of the account.
func RelayedDelete(id, actor, uri string) Object {
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams", "id": id, "type": "Delete", "actor": actor,
		"to": []string{Public}, "object": uri,
	}
}

// Tombstone returns what replaces a deleted post.
func Tombstone(uri string, at time.Time) Object {
	return Object{"id": uri, "type": "Tombstone", "formerType": "Note", "deleted": stamp(at)}
}

// Moderate returns the board's Remove (a post is hidden) or Add (it is restored).
func (s Site) Moderate(kind, uri string, seq int64, at time.Time) Object {
	return Object{
		"@context": postContext, "id": s.EntryID(seq) + "#" + kind, "type": kind, "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "published": stamp(at),
		"object": uri, "target": s.Posts(),
	}
}

// Entry returns one entry of the board's log, without proof: the board announces an activity under
// a number. The activity is embedded unchanged, with its proof.
func (s Site) Entry(epoch string, seq int64, at time.Time, inner json.RawMessage) Object {
	return Object{
		"@context": postContext, "id": s.EntryID(seq), "type": "Announce", "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "published": stamp(at),
		"stoa:seq": seq, "stoa:epoch": epoch, "object": inner,
	}
}

// Boost returns the board's Announce of a post, for followers that do not read the log. number
// makes its id unique: a post that was hidden and restored is announced again.
func (s Site) Boost(uri string, number int64, at time.Time) Object {
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams",
		"id":       s.Board() + "/announces/" + strconv.FormatInt(number, 10), "type": "Announce", "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "published": stamp(at), "object": uri,
	}
}

// Unboost returns the Undo of a Boost.
func (s Site) Unboost(uri string, number, boost int64, at time.Time) Object {
	o := s.Boost(uri, boost, at).Inside()
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams",
		"id":       s.Board() + "/announces/" + strconv.FormatInt(number, 10) + "#undo", "type": "Undo", "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "object": o,
	}
}

// Follow returns the node's Follow of an actor.
func (s Site) Follow(id, object string) Object {
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams", "id": id, "type": "Follow",
		"actor": s.Node(), "object": object, "to": []string{object},
	}
}

// Undo returns the Undo of an earlier activity of the node, inner.
func (s Site) Undo(id string, inner Object) Object {
	return Object{
		"@context": "https://www.w3.org/ns/activitystreams", "id": id, "type": "Undo", "actor": s.Node(), "object": inner,
	}
}

// Answer returns the Accept or Reject of a Follow of object, which it embeds with the members that
// identify it. An Accept to a node that reads logs contains the head of the log.
func (s Site) Answer(kind, id, actor, follow, follower, object, epoch string, head int64) Object {
	o := Object{
		"@context": listContext, "id": id, "type": kind, "actor": actor, "to": []string{follower},
		"object": Object{"id": follow, "type": "Follow", "actor": follower, "object": object},
	}
	if epoch != "" {
		o["stoa:epoch"], o["stoa:head"] = epoch, head
	}
	return o
}
