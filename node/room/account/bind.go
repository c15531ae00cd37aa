package account

import (
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room; the parameters are the fields of Accounts.
func New(h hall.House, name string, mail Mailer, webhook Webhook, links map[string]LinkFor, ways SignInWays,
	seal func(handle string, p key.Pair) ([]byte, error), joining Joining,
) *Accounts {
	return &Accounts{Base: h.Base, Private: h.Private, DB: h.DB, Words: h.Words, Name: name, Mail: mail, Webhook: webhook, Links: links,
		SignInWays: ways, Seal: seal, Joining: joining}
}

// Bind binds the operations of the room.
func (a *Accounts) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ServiceSession, a.Session)
	hall.Bind(t, protocol.GetAccount, a.Get)
	hall.Bind(t, protocol.PutAccount, a.Put)
	hall.Bind(t, protocol.GetAccountMail, a.GetMail)
	hall.Bind(t, protocol.PutAccountMail, a.PutMail)
	hall.Bind(t, protocol.ConfirmAccountMail, a.ConfirmAccountMail)
	hall.Bind(t, protocol.ListTokens, a.Tokens)
	hall.Bind(t, protocol.CreateToken, a.CreateToken)
	hall.Bind(t, protocol.RevokeToken, a.RevokeToken)
	hall.Bind(t, protocol.ListSessions, a.Sessions)
	hall.Bind(t, protocol.EndSession, a.EndSession)
	hall.Bind(t, protocol.EndOtherSessions, a.EndOtherSessions)
	hall.Bind(t, protocol.GetSignInMethods, a.Methods)
	hall.Bind(t, protocol.GetPasskeyOptions, a.PasskeyOptions)
	hall.Bind(t, protocol.AddPasskey, a.AddPasskey)
	hall.Bind(t, protocol.DeletePasskey, a.DeletePasskey)
	hall.Bind(t, protocol.RemoveWallet, a.RemoveWallet)
	hall.Bind(t, protocol.ListCredentials, a.Credentials)
	hall.Bind(t, protocol.RenameCredential, a.RenameCredential)
	hall.Bind(t, protocol.RemoveCredential, a.RemoveCredential)
	hall.Bind(t, protocol.MakeRecoveryCodes, a.MakeRecoveryCodes)
	hall.Bind(t, protocol.GetNotify, a.GetNotify)
	hall.Bind(t, protocol.PutNotify, a.PutNotify)
	hall.Bind(t, protocol.ConfirmMail, a.ConfirmMail)
	hall.Bind(t, protocol.AddDevice, a.AddDevice)
	hall.Bind(t, protocol.ListDevices, a.Devices)
	hall.Bind(t, protocol.DeleteDevice, a.DeleteDevice)
	hall.Bind(t, protocol.ListWaiting, a.WhatWaits)
	hall.Bind(t, protocol.ListKeys, a.Keys)
	hall.Bind(t, protocol.AddKey, a.AddKey)
	hall.Bind(t, protocol.MakeKey, a.MakeKey)
	hall.Bind(t, protocol.RetireKey, a.RetireKey)
	hall.Bind(t, protocol.RegisterProfile, a.Register)
	hall.Ahead(t, protocol.RegisterProfile, a.MayRegister)
	hall.Bind(t, protocol.ReadClaim, a.ReadClaim)
	hall.Bind(t, protocol.ClaimProfile, a.Claim)
	hall.Bind(t, protocol.MakeClaimLink, a.ClaimLink)
	hall.Bind(t, protocol.ReleaseProfile, a.Release)
	hall.Bind(t, protocol.GetHolders, a.Holders)
	hall.Bind(t, protocol.CreateInvitation, a.Invite)
	hall.Bind(t, protocol.ListInvitations, a.Invitations)
	hall.Bind(t, protocol.WithdrawInvitation, a.Withdraw)
	hall.Bind(t, protocol.ListJoining, a.Waiting)
	hall.Bind(t, protocol.DecideJoining, a.Decide)
	hall.Bind(t, protocol.ListAccounts, a.List)
	hall.Bind(t, protocol.OpenAccount, a.OpenFor)
	hall.Bind(t, protocol.MakeSignInLink, a.LinkFor)
	hall.Bind(t, protocol.CloseAccountFor, a.Close)
	hall.Bind(t, protocol.SetRole, a.SetRole)
	hall.Bind(t, protocol.SignOut, a.SignOut)
	hall.Bind(t, protocol.ReadProfileHolder, a.Holder)
}

// Jobs are the handlers of the room's jobs.
func (a *Accounts) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.NoticeJob:   storage.HandlerOf(a.Notice),
		storage.MailJob:     storage.HandlerOf(a.SendMail),
		storage.WebhookJob:  storage.HandlerOf(a.SendWebhook),
		storage.PushJob:     storage.HandlerOf(a.SendPush),
		storage.SignInJob:   storage.HandlerOf(a.SendLink),
		storage.ConfirmJob:  storage.HandlerOf(a.SendConfirmation),
		storage.AddressJob:  storage.HandlerOf(a.SendAddressCode),
		storage.FormerJob:   storage.HandlerOf(a.NotifyFormer),
		storage.SecurityJob: storage.HandlerOf(a.SendSecurity),
		storage.JoinJob:     storage.HandlerOf(a.SendJoinCode),
		storage.LapseJob:    a.Lapse,
	}
}
