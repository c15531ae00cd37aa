package activity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"time"
)

// HeadType is the type of the signed head of a log. Other software has none for it.
const HeadType = "stoa:LogHead"

// LogPage returns one page of the board's log, in ascending order, beginning after entry after. It
// links the next page even when that is still empty. signed is the signed head, nil for none.
func (s Site) LogPage(after int64, limit int, epoch string, head, last int64, signed json.RawMessage, items []any) Object {
	at := func(n int64) string {
		return s.Log() + "?after=" + strconv.FormatInt(n, 10) + "&limit=" + strconv.Itoa(limit)
	}
	o := Object{
		"@context": listContext, "id": at(after), "type": "OrderedCollectionPage", "partOf": s.Log(),
		"stoa:epoch": epoch, "stoa:first": 1, "stoa:head": head, "next": at(last), "orderedItems": items,
	}
	if signed != nil {
		o["stoa:signedHead"] = signed
	}
	return o
}

// Head returns the head of the board's log, without proof: the number and hash of its last entry, as
// of a time.
func (s Site) Head(epoch string, seq int64, hash string, at time.Time) Object {
	return Object{
		"@context": postContext, "id": s.Log() + "#head", "type": HeadType, "actor": s.Board(), "published": stamp(at),
		"stoa:epoch": epoch, "stoa:seq": seq, "stoa:hash": hash,
	}
}

// Erased replaces a log entry whose object is deleted or hidden, so that the numbers have no gaps and no
// deleted text is served. hash is that of the entry, "" when it is not known any more.
func (s Site) Erased(seq int64, hash string) Object {
	o := Object{"id": s.EntryID(seq), "type": "Tombstone", "formerType": "Announce", "stoa:seq": seq}
	if hash != "" {
		o["stoa:hash"] = hash
	}
	return o
}

// EntryHash returns the hash of an entry of a log and the activity that it announces: "sha256:" and the
// hex SHA-256 of its epoch, number and time, the type of the activity and the id of its object, each
// followed by a line feed. It stays the same when the object is deleted or hidden, when the node's key changes and
// when a later version writes other members. That of a Tombstone is what it says, "" when it says
// none.
func EntryHash(entry, inner *Activity) string {
	if entry.Type.Is("Tombstone") {
		if !IsEntryHash(string(entry.Hash)) {
			return ""
		}
		return string(entry.Hash)
	}
	if entry.Seq == nil || inner.ObjectID() == "" {
		return ""
	}
	kind := inner.Type.String()
	for _, known := range []string{"Create", "Update"} { // a relayed one may have several types
		if inner.Type.Is(known) {
			kind = known
		}
	}
	return HashEntry(string(entry.Epoch), *entry.Seq, entry.Published.Time, kind, inner.ObjectID())
}

// HashEntry is EntryHash of its parts.
func HashEntry(epoch string, seq int64, at time.Time, kind, object string) string {
	sum := sha256.Sum256([]byte(epoch + "\n" + strconv.FormatInt(seq, 10) + "\n" + stamp(at) + "\n" + kind + "\n" + object + "\n"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

var entryHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsEntryHash reports whether s has the form of an EntryHash.
func IsEntryHash(s string) bool { return entryHash.MatchString(s) }

// A LogConflict is how a log contradicts what a node took of it before, as the node reports it.
type LogConflict struct {
	Kind   Text   `json:"stoa:kind"` // fork, fallback or tree
	Epoch  Text   `json:"stoa:epoch"`
	Seq    *int64 `json:"stoa:seq"`
	Ours   Text   `json:"stoa:ours"`   // hash of the entry that the node took
	Theirs Text   `json:"stoa:theirs"` // hash of the entry that the log has now
}

// Report returns the node's Flag of a post of another server, without proof. It names the author too, as the software of the
// fediverse expects.
func (s Site) Report(id, author, post, comment string, at time.Time) Object {
	o := Object{"@context": postContext, "id": id, "type": "Flag", "actor": s.Node(), "to": []string{author}, "object": []string{author, post},
		"published": stamp(at)}
	if comment != "" {
		o["content"] = comment
	}
	return o
}

// ReportLog returns the node's Flag of the log of a board that it follows, without proof.
func (s Site) ReportLog(id, board, log, kind, epoch string, seq int64, ours, theirs string, at time.Time) Object {
	return Object{
		"@context": postContext, "id": id, "type": "Flag", "actor": s.Node(), "to": []string{board}, "object": log, "published": stamp(at),
		"stoa:conflict": Object{"stoa:kind": kind, "stoa:epoch": epoch, "stoa:seq": seq, "stoa:ours": ours, "stoa:theirs": theirs},
	}
}
