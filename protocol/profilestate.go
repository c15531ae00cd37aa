package protocol

// A ProfileState says why a profile is not shown; "" is a profile that is. What is not shown is found by nobody but its owner and the
// operators: not the profile, nor its posts, its board, its meetings or its shop.
type ProfileState string

const (
	ProfilePending   ProfileState = "pending"   // it waits for an operator's approval
	ProfileRefused   ProfileState = "refused"   // an operator refused it
	ProfileSuspended ProfileState = "suspended" // an operator hid it
	ProfileLeaving   ProfileState = "leaving"   // its owner deleted it, and may still undo that
)

var whyHidden = map[ProfileState]string{
	ProfilePending:   "waits for an operator of this node to approve it; until then its owner can change it, and nobody else sees it",
	ProfileRefused:   "was not approved by the operators of this node; get_own_profile shows why",
	ProfileSuspended: "is suspended by the operators of this node; get_own_profile shows why",
	ProfileLeaving:   "is being deleted; its owner can undo that",
}

// Hide notes the state of a profile of the caller.
func (c *Caller) Hide(handle string, state ProfileState) {
	if state == "" {
		return
	}
	if c.Hidden == nil {
		c.Hidden = map[string]ProfileState{}
	}
	c.Hidden[handle] = state
}

// MayWhileHidden refuses a write as a profile that is not shown, unless it only concerns its owner and the operators: the profile itself,
// its keys, notices and archive, the account, and complaints. handle is the one that an owner's operation names, "" for none.
func (c Caller) MayWhileHidden(op *Operation, handle string) error {
	if len(c.Hidden) == 0 || c.Standing == Operator {
		return nil
	}
	if op == FileComplaint.Operation {
		return nil
	}
	if op.For == Owners {
		switch op.Scope {
		case "", ScopeProfile, ScopeKeys, ScopeNotify, ScopeArchive, ScopeAccount:
			return nil
		}
	}
	if handle == "" {
		handle = c.Handle
	}
	if handle == "" && len(c.Handles) == 1 {
		handle = c.Handles[0]
	}
	if why, ok := whyHidden[c.Hidden[handle]]; ok {
		return Errorf(Forbidden, "@%s %s", handle, why)
	}
	return nil
}
