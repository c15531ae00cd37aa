package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// A Send is the parameters of SendMessage.
type Send struct {
	Tenant        string
	Message       Message
	HistoryLength *int
	Push          *protocol.ExchangePush // who is told of the task; nil for nobody
	Immediately   bool
}

// A TaskQuery is the parameters of GetTask and CancelTask.
type TaskQuery struct {
	Tenant        string
	ID            string
	HistoryLength *int
}

// ParseSend parses the parameters of SendMessage in a version, which are known to be valid JSON. As in
// ProtoJSON, names may be camelCase or snake_case, null means absent, and unknown members are
// ignored. The error is an invalid-params *Error with every fault, or says that a content type is
// not supported.
func ParseSend(version string, params json.RawMessage) (Send, error) {
	r := &reader{legacy: version == Legacy}
	o := r.object("params", params)
	s := Send{Tenant: o.text("tenant", MaxID)}
	s.Message = parseMessage(o.object("message"))
	if s.Message.Role != RoleUser && len(r.faults) == 0 {
		r.fault("message.role", "must be "+r.roles()[0])
	}
	if raw := o.take("configuration"); raw != nil {
		c := o.child("configuration", raw)
		s.HistoryLength = c.length("historyLength")
		c.list("acceptedOutputModes")
		if r.legacy {
			s.Push = c.push("pushNotificationConfig")
			s.Immediately = c.take("blocking") != nil && !c.boolean("blocking")
		} else {
			s.Push = c.push("taskPushNotificationConfig")
			s.Immediately = c.boolean("returnImmediately")
		}
	}
	o.metadata("metadata")
	return s, r.err()
}

// ParseTaskQuery reads the parameters of GetTask and CancelTask.
func ParseTaskQuery(params json.RawMessage) (TaskQuery, error) {
	r := &reader{}
	o := r.object("params", params)
	q := TaskQuery{Tenant: o.text("tenant", MaxID), ID: o.needed("id", MaxID), HistoryLength: o.length("historyLength")}
	return q, r.err()
}

// A ListQuery is the parameters of ListTasks.
type ListQuery struct {
	Tenant, ContextID, PageToken string
	State                        State // "" for every one
	PageSize                     int
	HistoryLength                *int
	Since                        *time.Time
	Artifacts                    bool
}

// Pages of ListTasks.
const (
	defaultPage = 50
	maxPage     = 100
)

// ParseListQuery reads the parameters of ListTasks, which may be absent.
func ParseListQuery(params json.RawMessage) (ListQuery, error) {
	if params == nil {
		params = json.RawMessage("{}")
	}
	r := &reader{}
	o := r.object("params", params)
	q := ListQuery{
		Tenant: o.text("tenant", MaxID), ContextID: o.text("contextId", MaxID), PageToken: o.text("pageToken", MaxURL), State: o.state("status"),
		HistoryLength: o.length("historyLength"), Artifacts: o.boolean("includeArtifacts"), PageSize: defaultPage,
	}
	if n := o.length("pageSize"); n != nil {
		if q.PageSize = *n; q.PageSize < 1 || q.PageSize > maxPage {
			o.fault("pageSize", fmt.Sprintf("must be from 1 to %d", maxPage))
		}
	}
	if s := o.text("statusTimestampAfter", MaxID); s != "" {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			o.fault("statusTimestampAfter", "must be a time such as 2026-11-20T10:00:00Z")
		}
		q.Since = &at
	}
	return q, r.err()
}

func parseMessage(o *object) Message {
	m := Message{
		MessageID: o.needed("messageId", MaxID), ContextID: o.text("contextId", MaxID), TaskID: o.text("taskId", MaxID),
		Role: o.role(), Metadata: o.metadata("metadata"), Extensions: o.list("extensions"), References: o.list("referenceTaskIds"),
	}
	var parts []json.RawMessage
	raw := o.take("parts")
	switch {
	case o.r == nil:
	case raw == nil || json.Unmarshal(raw, &parts) != nil || len(parts) == 0:
		o.fault("parts", "must be a list of at least one part")
	case len(parts) > MaxParts:
		o.fault("parts", fmt.Sprintf("at most %d parts", MaxParts))
	default:
		for i, raw := range parts {
			m.Parts = append(m.Parts, parsePart(o.child(fmt.Sprintf("parts[%d]", i), raw)))
		}
	}
	return m
}

func parsePart(o *object) Part {
	if o.r != nil && o.r.legacy {
		return parsePart03(o)
	}
	p := Part{
		Metadata: o.metadata("metadata"), Filename: o.text("filename", MaxFilename), MediaType: o.text("mediaType", MaxMediaType),
	}
	contents := 0
	if raw := o.take("text"); raw != nil {
		contents++
		var s string
		if !decodeText(raw, &s) {
			o.fault("text", "must be a string")
		}
		p.Text = &s
	}
	if o.take("raw") != nil { // bytes are not supported, so they are not decoded
		contents++
		o.r.unsupported = true
	}
	if o.take("url") != nil {
		contents++
		if p.URL = o.text("url", MaxURL); !strings.HasPrefix(p.URL, "https://") {
			o.fault("url", "must be an https address")
		}
	}
	// A data part may be null; only a missing member is absent.
	if raw, sent := o.members["data"]; sent {
		contents++
		p.Data = raw
	}
	if o.r != nil && contents != 1 {
		o.fault("", "must hold exactly one of text, raw, url and data")
	}
	return o.media(p)
}

// parsePart03 reads a part in the form of 0.3.
func parsePart03(o *object) Part {
	p := Part{Metadata: o.metadata("metadata")}
	switch kind := o.text("kind", MaxID); kind {
	case "text":
		var s string
		if !decodeText(o.take("text"), &s) {
			o.fault("text", "must be a string")
		}
		p.Text = &s
	case "data":
		if p.Data = o.take("data"); len(p.Data) == 0 || p.Data[0] != '{' {
			o.fault("data", "must be an object")
		}
	case "file":
		f := o.object("file")
		if f.r == nil {
			break
		}
		p.Filename, p.MediaType = f.text("name", MaxFilename), f.text("mimeType", MaxMediaType)
		bytes, uri := f.take("bytes"), f.text("uri", MaxURL)
		switch {
		case (bytes == nil) == (uri == ""):
			f.fault("", "must hold exactly one of bytes and uri")
		case bytes != nil: // they are not supported, so they are not decoded
			o.r.unsupported = true
		case !strings.HasPrefix(uri, "https://"):
			f.fault("uri", "must be an https address")
		}
		p.URL = uri
	default:
		o.fault("kind", "must be text, data or file")
	}
	return o.media(p)
}

// media checks the type of a part.
func (o *object) media(p Part) Part {
	switch media, _, _ := strings.Cut(p.MediaType, ";"); strings.ToLower(strings.TrimSpace(media)) {
	case "", "text/plain", "application/json":
	default:
		if p.URL == "" && o.r != nil { // the document at an address may be of any type
			o.r.unsupported = true
		}
	}
	return p
}
