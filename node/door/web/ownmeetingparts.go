package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// stateCrumbs select the requests that are shown, by their state.
func stateCrumbs(ctx context.Context, o *ownMeetings) (links []templ.Component) {
	for _, state := range append([]protocol.MeetingState{""}, protocol.MeetingStates[1:]...) {
		text := tr(ctx, "All")
		if state != "" {
			text = initial(tr(ctx, meetingStates[state]))
		}
		links = append(links, crumb{o.to("", "state", string(state)) + "#all", text, o.State == state})
	}
	return links
}

var attendanceWords = map[protocol.MeetingAnswer]string{
	protocol.AnswerAccepted: english("Accepted."), protocol.AnswerTentative: english("Accepted, but not for sure."), protocol.AnswerDeclined: english("Declined."),
	protocol.AnswerProposed: english("Another time is proposed; the meeting stays as it is until you move it."),
}

// answerLine is for the requester.
var answerLine = box("answer", "A line for the requester; may be empty")

// decision is a form about a request, with a button.
func decision(f *sent, op *protocol.Operation, id, button string, fields ...templ.Component) templ.Component {
	in := append([]templ.Component{ownKeys(op.Name, "", id)}, fields...)
	return posted("form", op.Name, meetingsPath, append(in, ask(op, f, op.Name, nil, answerLine), sends(button))...)
}

// blockOptions are the choices of whose further requests are refused.
func blockOptions(ctx context.Context, mail string) [][2]string {
	options := [][2]string{{"none", tr(ctx, "may come")}, {"mailbox", tr(ctx, "of this mailbox are refused")}}
	if _, domain, ok := strings.Cut(mail, "@"); ok {
		options = append(options, [2]string{"domain", tr(ctx, "of everybody at %s are refused", domain)})
	}
	return options
}

func noShowForm(id string) templ.Component {
	return posted("", "", meetingsPath, ownKeys("mark_no_show", "", id), submitsQuietly("The requester did not come"))
}

// today marks the current day.
func today(d time.Time) templ.Attributes {
	if d.Format(time.DateOnly) == time.Now().In(d.Location()).Format(time.DateOnly) {
		return templ.Attributes{"aria-current": "date"}
	}
	return nil
}

func unblockForm(handle, id string) templ.Component {
	return posted("", "", meetingsPath, ownKeys("unblock_writer", handle, id), submitsQuietly("Take requests again"))
}

func meetingSettingsForm(f *sent, s protocol.MeetingSettings) templ.Component {
	at, v := "put_meeting_settings", settingsValues(s)
	step := strconv.Itoa(protocol.MeetingRules{Durations: s.Durations}.Complete().SlotStep)
	table := meetingTable.change("slotStep", func(c control) control { return c.usually(step) })
	return posted("card form", at, meetingsPath, ownKeys(at, s.Handle, ""), version(f, v), table.fields(f, at, v), sends("Save the settings"))
}

// anyFault reports whether something is wrong with one of some fields, or something else is stored in it.
func (f *sent) anyFault(names ...string) bool {
	return f != nil && slices.ContainsFunc(names, func(name string) bool { return f.wrong[name] != "" || f.differs(name) })
}
