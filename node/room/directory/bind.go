package directory

import (
	"stoa/node/hall"
	"stoa/protocol"
)

// Bind binds the operations of the room.
func (d *Directory) Bind(t *hall.Table) {
	hall.Bind(t, protocol.GetAgentProfile, d.Get)
	hall.Bind(t, protocol.SearchAgents, d.Search)
	hall.Bind(t, protocol.SearchARD, d.SearchARD)
	hall.Bind(t, protocol.ExploreARD, d.ExploreARD)
	hall.Bind(t, protocol.ListDirectories, d.Directories)
	hall.Bind(t, protocol.FollowDirectory, d.FollowDirectory)
	hall.Bind(t, protocol.UnfollowDirectory, d.UnfollowDirectory)
	hall.Bind(t, protocol.ListPeople, d.People)
	hall.Bind(t, protocol.ListMerchants, d.Merchants)
	hall.Bind(t, protocol.GetMerchant, d.Merchant)
	hall.Bind(t, protocol.ListItems, d.Items)
	hall.Bind(t, protocol.ListOwnItems, d.OwnItems)
	hall.Bind(t, protocol.GetOwnItem, d.OwnItem)
	hall.Bind(t, protocol.PutItem, d.PutItem)
	hall.Bind(t, protocol.RemoveItem, d.RemoveItem)
	hall.Bind(t, protocol.PutItems, d.PutItems)
	hall.Bind(t, protocol.CompleteValue, d.Complete)
	hall.Bind(t, protocol.UCPItems, d.ItemsForUCP)
	hall.Bind(t, protocol.UCPLocations, d.LocationsForUCP)
	hall.Bind(t, protocol.GetMerchantRecord, d.Record)
	hall.Bind(t, protocol.PutMerchant, d.PutRecord)
	hall.Bind(t, protocol.GetOwnProfile, d.GetOwn)
	hall.Bind(t, protocol.GetTurnedAway, d.TurnedAway)
	hall.Bind(t, protocol.PutOwnProfile, d.PutOwn)
	hall.Bind(t, protocol.ListNeeds, d.Needs)
	hall.Bind(t, protocol.PutNeed, d.PutNeed)
	hall.Bind(t, protocol.DeleteNeed, d.DeleteNeed)
	hall.Bind(t, protocol.ListCapabilities, d.Capabilities)
	hall.Bind(t, protocol.PutCapability, d.PutCapability)
	hall.Bind(t, protocol.DeleteCapability, d.DeleteCapability)
	hall.Bind(t, protocol.GetIdentity, d.Identity)
	hall.Bind(t, protocol.DropIdentity, d.DropIdentity)
}
