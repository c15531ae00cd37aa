package catalog

import (
	"stoa/node/hall"
	"stoa/protocol"
)

// Bind binds the operations of the room.
func (c *Catalog) Bind(t *hall.Table) {
	hall.BindFile(t, protocol.ImportItems, c.Import)
	hall.BindPlain(t, protocol.ExportItems, c.Export)
}
