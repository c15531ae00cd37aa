package catalog

import (
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Bind binds the operations of the room.
func (c *Catalog) Bind(t *hall.Table) {
	hall.BindFile(t, protocol.ImportItems, c.Import)
	hall.BindPlain(t, protocol.ExportItems, c.Export)
	hall.Bind(t, protocol.GetCatalogAddress, c.Address)
	hall.Bind(t, protocol.PutCatalogAddress, c.PutAddress)
	hall.Bind(t, protocol.ReadCatalogAddress, c.ReadAddress)
	hall.Bind(t, protocol.RemoveCatalogAddress, c.RemoveAddress)
}

// Jobs returns the handlers of the room's jobs.
func (c *Catalog) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{storage.CatalogJob: c.Read}
}
