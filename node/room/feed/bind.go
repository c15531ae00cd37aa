package feed

import (
	"stoa/node/hall"
	"stoa/protocol"
)

// New makes the room, with places for so many streams.
func New(h hall.House, streams int) *Feed {
	f := &Feed{DB: h.DB, Base: h.Base, Hub: NewHub(h.DB, h.Base, h.Log), Pulse: NewPulse(h.DB, h.Log)}
	f.Hub.Max = streams
	return f
}

// Bind binds the operations of the room.
func (f *Feed) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ReadFeed, f.Read)
	hall.Bind(t, protocol.StreamFeed, f.Stream)
	hall.BindPlain(t, protocol.WhatsNew, f.Poll)
}
