package meeting

import (
	"net/http"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room; the parameters are the fields of Meeting.
func New(h hall.House, mail func() Mailer, perHour int, webhook Sender, seal Sealer, linkKey []byte, calendars *http.Client) *Meeting {
	return &Meeting{Base: h.Base, Private: h.Private, DB: h.DB, Words: h.Words, Mail: mail, PerHour: perHour, Webhook: webhook, Seal: seal, LinkKey: linkKey,
		CalendarClient: calendars}
}

// Bind binds the operations of the room.
func (m *Meeting) Bind(t *hall.Table) {
	hall.Bind(t, protocol.GetMeetingInfo, m.Info)
	hall.Bind(t, protocol.GetMeetingSettings, m.GetSettings)
	hall.Bind(t, protocol.PutMeetingSettings, m.PutSettings)
	hall.Bind(t, protocol.RequestMeeting, m.Ask)
	hall.Ahead(t, protocol.RequestMeeting, m.Ahead)
	hall.Bind(t, protocol.GetMeeting, m.Get)
	hall.Bind(t, protocol.CancelMeeting, m.Cancel)
	hall.Bind(t, protocol.PickMeetingTime, m.Pick)
	hall.Bind(t, protocol.ReadMeetingLink, m.ReadLink)
	hall.Bind(t, protocol.UseMeetingLink, m.UseLink)
	hall.Bind(t, protocol.ReadDecisionLink, m.ReadDecisionLink)
	hall.Bind(t, protocol.UseDecisionLink, m.UseDecisionLink)
	hall.Bind(t, protocol.ListMeetings, m.List)
	hall.Bind(t, protocol.GetOwnMeeting, m.GetOwn)
	hall.Bind(t, protocol.ApproveMeeting, m.Approve)
	hall.Bind(t, protocol.DeclineMeeting, m.Decline)
	hall.Bind(t, protocol.ProposeMeetingTimes, m.Propose)
	hall.Bind(t, protocol.MoveMeeting, m.Move)
	hall.Bind(t, protocol.CancelOwnMeeting, m.CancelOwn)
	hall.Bind(t, protocol.MarkNoShow, m.NoShow)
	hall.Bind(t, protocol.ListCalendars, m.Calendars)
	hall.Bind(t, protocol.ConnectCalendar, m.ConnectCalendar)
	hall.Bind(t, protocol.GetCalendar, m.GetCalendar)
	hall.Bind(t, protocol.ChooseCalendars, m.ChooseCalendars)
	hall.Bind(t, protocol.CheckCalendar, m.CheckCalendar)
	hall.Bind(t, protocol.DisconnectCalendar, m.DisconnectCalendar)
	hall.Bind(t, protocol.MakeMeetingFeed, m.MakeFeed)
	hall.Bind(t, protocol.DeleteMeetingFeed, m.DeleteFeed)
	hall.Bind(t, protocol.GetMeetingICS, m.ICS)
}

// Jobs are the handlers of the room's jobs.
func (m *Meeting) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.MeetingDueJob:    storage.HandlerOf(m.Due),
		storage.MeetingMailJob:   storage.HandlerOf(m.SendMail),
		storage.MeetingUpdateJob: storage.HandlerOf(m.Update),
		storage.MeetingRemindJob: storage.HandlerOf(m.Remind),
		storage.CalendarCheckJob: storage.HandlerOf(m.Check),
		storage.CalendarBusyJob:  storage.HandlerOf(m.ReadBusy),
		storage.CalendarEventJob: storage.HandlerOf(m.WriteEvent),
	}
}
