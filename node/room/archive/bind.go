package archive

import (
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Bind binds the operations of the room.
func (a *Archive) Bind(t *hall.Table) {
	hall.BindPlain(t, protocol.ExportArchive, a.Export)
	hall.Bind(t, protocol.MakeArchiveLink, a.MakeLink)
	hall.BindPlain(t, protocol.FetchArchive, a.Fetch)
	hall.BindFile(t, protocol.ImportArchive, a.Import)
}

// Jobs are the handlers of the room's jobs.
func (a *Archive) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.ImportJob: storage.HandlerOf(a.Resume),
	}
}
