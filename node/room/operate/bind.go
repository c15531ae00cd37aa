package operate

import (
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Operate is the room of who runs the node.
type Operate struct {
	Base   string  // public address of the node, without a slash at the end
	Health *Health // of the process
	Upkeep
	FollowJobs
	Examinations
}

// Bind binds the operations of the room.
func (o *Operate) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ReadHealth, o.Health.Read)
	hall.Bind(t, protocol.LookAgain, o.Again)
	hall.Bind(t, protocol.ReadTraffic, Traffic)
	hall.Bind(t, protocol.FollowPeer, Follow)
	hall.Bind(t, protocol.UnfollowPeer, Unfollow)
	hall.Bind(t, protocol.RetryPeer, Peers{Base: o.Base}.Retry)
	hall.Bind(t, protocol.RereadPeer, Peers{}.Reread)
	hall.Bind(t, protocol.ReadConflict, Peers{}.Conflict)
	hall.Bind(t, protocol.ListJobs, Jobs)
	hall.Bind(t, protocol.RequeueJob, Requeue)
	hall.Bind(t, protocol.DropJob, Drop)
}

// Jobs are the handlers of the room's jobs.
func (o *Operate) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.PruneJob:     o.Prune,
		storage.ScrubJob:     o.Scrub,
		storage.PartsJob:     o.Parts,
		storage.HoursJob:     o.Hours,
		storage.ExamineJob:   o.Examine,
		storage.AdoptJob:     o.Adopt,
		storage.DropJob:      o.DropThreads,
		storage.ShopWordsJob: o.ShopWords,
		storage.DropItemsJob: o.DropItems,
		storage.FollowJob:    storage.HandlerOf(o.Job),
		storage.UnfollowJob:  storage.HandlerOf(o.EndJob),
	}
}
