package directory

import (
	"context"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// completed are the fields of what is completed by the counts.
var completed = map[string]string{
	protocol.CompleteCity: cityField, protocol.CompleteCategory: categoryField, protocol.CompleteTag: protocol.ARDTags,
	protocol.CompleteCapability: protocol.ARDCapabilities,
}

// Complete returns the values in use that begin with a prefix.
func (d *Directory) Complete(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.Completion) (out protocol.Completed, err error) {
	out.Values = []string{}
	prefix := strings.ToLower(strings.TrimSpace(in.Prefix))
	if in.Of == protocol.CompleteHandle {
		found, err := tx.Profiles().HandlesFrom(ctx, strings.TrimPrefix(prefix, "@"), protocol.MaxCompleted+1)
		out.Total = len(found)
		out.Values = append(out.Values, found[:min(out.Total, protocol.MaxCompleted)]...)
		return out, err
	}
	x, err := d.Explored.Get(ctx, tx)
	if protocol.CodeOf(err) == protocol.Overloaded { // it is being counted for the first time
		return out, nil
	}
	if err != nil {
		return out, err
	}
	for _, text := range x.ranked[completed[in.Of]] {
		if !strings.HasPrefix(strings.ToLower(text), prefix) {
			continue
		}
		if out.Total++; out.Total <= protocol.MaxCompleted {
			out.Values = append(out.Values, text)
		}
	}
	return out, nil
}
