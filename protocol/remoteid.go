package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// RemoteID returns the local id of an object of another node: a TypeID for the given time whose
// random bits are derived from the object's ActivityPub id. Two nodes that store the object can
// therefore tell that a local id names it (a signed reply names its parent by the id that its
// author saw), and no node can choose an id that collides with another's.
func RemoteID(prefix string, at time.Time, uri string) string {
	u := remoteBits(uri)
	ms := uint64(at.UnixMilli())
	binary.BigEndian.PutUint32(u[0:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(u[4:6], uint16(ms))
	return prefix + "_" + encodeID(u)
}

// IsRemoteID reports whether id was made by [RemoteID] for uri, at any time.
func IsRemoteID(id, uri string) bool {
	const tail = 15 // characters that contain only random bits
	if len(id) < 27 {
		return false
	}
	want := encodeID(remoteBits(uri))
	return id[len(id)-tail:] == want[len(want)-tail:]
}

func remoteBits(uri string) (u [16]byte) {
	sum := sha256.Sum256([]byte(uri))
	copy(u[6:], sum[:])
	u[6] = 0x70 | u[6]&0x0f // version 7
	u[8] = 0x80 | u[8]&0x3f // variant
	return u
}
