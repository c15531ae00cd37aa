package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// A ReturnRequest says how to ask a business for a return (spec §2.7).
type ReturnRequest struct {
	Kind         ContactKind `json:"kind" enum:"support" doc:"Kind of the message to write: support."`
	Contact      *string     `json:"contact" nullable:"true" format:"uri" doc:"Where a message goes without an account; null when the business takes no such messages."`
	AgentDecides *string     `json:"agentDecidesUpTo" nullable:"true" doc:"Amount up to which its support agent decides; null when the owner decides on every one."`
	Text         string      `json:"text" doc:"The same in words."`
}

// A ReturnTask says who decides about a return.
type ReturnTask struct {
	AgentDecides *string `json:"agentDecidesUpTo" nullable:"true" doc:"Up to which amount the support agent decides; more, and with null all, is for the owner."`
}

// ReturnTaskOf marks a thread of a kind with a business of that policy, nil when it cannot be about a
// return.
func ReturnTaskOf(kind ContactKind, p *ReturnsPolicy) *ReturnTask {
	if kind != Support || p == nil || !p.AcceptsReturns {
		return nil
	}
	return &ReturnTask{p.agentDecides()}
}

// ReturnRequestOf returns how to ask the business of a profile for a return, nil when it accepts none.
func ReturnRequestOf(p Profile) *ReturnRequest {
	if p.Returns == nil || !p.Returns.AcceptsReturns {
		return nil
	}
	r := &ReturnRequest{Kind: Support, AgentDecides: p.Returns.agentDecides(), Text: p.Returns.asking(TakesSupport(p.ContactPolicy))}
	if TakesSupport(p.ContactPolicy) {
		r.Contact = p.Interfaces.PublicContact
	}
	return r
}

// TakesSupport reports whether messages of the kind support are taken.
func TakesSupport(p ContactPolicy) bool {
	return (p.Anonymous || p.OutsideAgentsWithIdentity) && slices.Contains(p.Kinds, string(Support))
}

func (p *ReturnsPolicy) agentDecides() *string {
	if p.SupportAgentApprovesUp == nil || strings.TrimSpace(*p.SupportAgentApprovesUp) == "" {
		return nil
	}
	return p.SupportAgentApprovesUp
}

// asking says how to ask for a return, and who decides.
func (p *ReturnsPolicy) asking(support bool) string {
	how := "Ask the business; it takes no support messages here."
	if support {
		how = "Ask by a message of the kind support."
	}
	if amount := p.agentDecides(); amount != nil {
		return how + fmt.Sprintf(" Its support agent decides up to %s; more goes to the owner.", *amount)
	}
	return how + " The owner decides."
}

// Words returns the policy in English sentences. support says whether the business takes support
// messages. Parts were written by the owner.
func (p *ReturnsPolicy) Words(support bool) string {
	if !p.AcceptsReturns {
		return strings.TrimSpace("Returns are not accepted. " + p.Note)
	}
	parts := []string{"Returns are accepted."}
	if p.WindowDays != nil {
		parts[0] = fmt.Sprintf("Returns are accepted within %d days.", *p.WindowDays)
		if *p.WindowDays == 1 {
			parts[0] = "Returns are accepted within a day."
		}
	}
	if p.Covers != "" {
		parts = append(parts, "What may be returned: "+sentence(p.Covers))
	}
	if p.GoodsMustComeBack != nil {
		parts = append(parts, map[bool]string{true: "The goods must be sent back.", false: "The goods need not be sent back."}[*p.GoodsMustComeBack])
	}
	parts = append(parts, p.asking(support))
	if p.Instructions != nil && *p.Instructions != "" {
		parts = append(parts, sentence(*p.Instructions))
	}
	if p.Note != "" {
		parts = append(parts, sentence(p.Note))
	}
	return strings.Join(parts, " ")
}

// sentence ends a text with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") || strings.HasSuffix(s, "।") {
		return s
	}
	return s + "."
}
