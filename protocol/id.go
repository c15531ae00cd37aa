package protocol

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// Prefixes of the identifiers that this node makes (contract §1).
const (
	PostID     = "post"
	FeedID     = "feed"
	ThreadID   = "thr"
	MessageID  = "msg"
	BidID      = "bid"
	MeetingID  = "mtg"
	ReviewID   = "rev"
	ItemID     = "item"
	AccountID  = "acc"
	VariantID  = "var"
	TokenID    = "tok"
	SessionID  = "ses"
	PasskeyID  = "psk"
	DeviceID   = "dev"
	ActivityID = "act"
	BlockID    = "blk"
	ImportID   = "imp"
	NoteID     = "note"

	AttentionID = "abd" // an attention board
	PayeeID     = "pya" // a payment account
	PaymentID   = "pay"
	RefundID    = "rfd"
	CalendarID  = "cal" // an account at a calendar server

	ReceiptID   = "rcpt" // of an order
	ComplaintID = "cmp"

	TillID  = "till" // of a shop
	OrderID = "ord"

	CheckoutID = "chk" // of UCP
	CartID     = "cart"
)

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a TypeID: the prefix, an underscore and a UUIDv7 (RFC 9562
// §5.7) in 26 characters of lower-case Crockford base32. Two ids of one prefix
// sort by the millisecond they were made for, and within one as this process
// made them, 2,048 of them at least, while few other milliseconds come between
// (RFC 9562 §6.2, method 1). Else their order is arbitrary and fixed.
func NewID(prefix string, at time.Time) string {
	var u [16]byte
	rand.Read(u[6:])
	ms := uint64(at.UnixMilli())
	binary.BigEndian.PutUint32(u[0:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(u[4:6], uint16(ms))
	n := recent.next(ms, binary.BigEndian.Uint16(u[6:8]))
	binary.BigEndian.PutUint16(u[6:8], 0x7000|n) // version 7
	u[8] = 0x80 | u[8]&0x3f                      // variant
	return prefix + "_" + encodeID(u)
}

// recent counts the ids of milliseconds, each in the slot of its last digits until another takes it.
var recent idCounter

type idCounter struct {
	mu    sync.Mutex
	slots [64]struct {
		ms uint64
		n  uint16
	}
}

// next is the number of an id within its millisecond, of 12 bits. They begin at random in the lower half; after the last they are random.
func (c *idCounter) next(ms uint64, random uint16) uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.slots[ms%uint64(len(c.slots))]
	switch {
	case s.ms != ms:
		s.ms, s.n = ms, random&0x07ff
	case s.n < 0x0fff:
		s.n++
	default:
		return random & 0x0fff
	}
	return s.n
}

func encodeID(u [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

// IsID reports whether s is a well-formed id with the given prefix. It does not check whether the
// thing exists.
func IsID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix+"_")
	if !ok || len(rest) != 26 || rest[0] > '7' {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(crockford, rest[i]) < 0 {
			return false
		}
	}
	return true
}
