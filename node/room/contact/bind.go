package contact

import (
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room.
func New(h hall.House, webhook Sender, seal Sealer, followers int) *Contact {
	return &Contact{Base: h.Base, Private: h.Private, DB: h.DB, Webhook: webhook, Seal: seal, Hub: NewHub(h.DB, h.Log, followers)}
}

// Bind binds the operations of the room.
func (r *Contact) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ContactAgent, r.Begin)
	hall.Ahead(t, protocol.ContactAgent, r.Ahead)
	hall.Bind(t, protocol.CheckConversation, r.Check)
	hall.Bind(t, protocol.DeleteMessage, r.DeleteMessage)
	hall.Bind(t, protocol.ContinueConversation, r.Continue)
	hall.Bind(t, protocol.ListThreads, r.List)
	hall.Bind(t, protocol.GetThread, r.Get)
	hall.Bind(t, protocol.AnswerThread, r.Answer)
	hall.Bind(t, protocol.MarkThreadRead, r.Read)
	hall.Bind(t, protocol.CloseThread, r.Close)
	hall.Bind(t, protocol.BlockWriter, r.Block)
	hall.Bind(t, protocol.UnblockWriter, r.Unblock)
	hall.Bind(t, protocol.ListBlockedWriters, r.ListBlocked)
	hall.Bind(t, protocol.ListFollowers, r.ListFollowers)
	hall.Bind(t, protocol.RemoveFollower, r.RemoveFollower)
	hall.Bind(t, protocol.ListCallbacks, r.ListCallbacks)
	hall.Bind(t, protocol.ReplayCallback, r.Replay)
	hall.Bind(t, protocol.SendExchange, r.SendExchange)
	hall.Ahead(t, protocol.SendExchange, r.AheadExchange)
	hall.Bind(t, protocol.GetExchange, r.GetExchange)
	hall.Bind(t, protocol.CancelExchange, r.CancelExchange)
	hall.Bind(t, protocol.ListExchanges, r.ListExchanges)
	hall.Bind(t, protocol.FollowExchange, r.Follow)
	hall.Bind(t, protocol.SetExchangePush, r.SetPush)
	hall.Bind(t, protocol.ListExchangePushes, r.ListPushes)
	hall.Bind(t, protocol.DeleteExchangePush, r.DeletePush)
}

// Jobs are the handlers of the room's jobs.
func (r *Contact) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.SilenceJob:  storage.HandlerOf(r.Silence),
		storage.CallbackJob: storage.HandlerOf(r.Deliver),
		storage.TaskPushJob: storage.HandlerOf(r.Tell),
	}
}
