package node

import (
	"context"
	"log/slog"

	"stoa/node/hall"
	"stoa/protocol"
)

// federated counts an event of the federation.
func (n *Node) federated(event, host string, err error) {
	n.metrics.federated(event, host, err)
	if event == "delivery" {
		n.Meter.Delivery(err)
	}
}

// observe writes the log line of a request and adds its sample to the metrics.
func (n *Node) observe(o hall.Observation) {
	n.metrics.operation(o)
	n.Meter.Operation(o)
	if o.Err == nil {
		n.sightings.Record(o.Caller, protocol.Lookup(o.Op))
		if o.Op == protocol.PostToBoard.Name || o.Op == protocol.EditPost.Name {
			n.prover.Note(o.Caller)
		}
	}
	level, code := slog.LevelDebug, protocol.CodeOf(o.Err)
	switch {
	case code == protocol.Internal:
		level = slog.LevelError
	case o.Err == nil && protocol.Lookup(o.Op) != nil && !protocol.Lookup(o.Op).ReadOnly:
		level = slog.LevelInfo
	}
	if !n.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []any{"rid", o.ID, "op", o.Op, "door", o.Door, "caller", o.Caller.Standing.String(), "dur", o.Duration}
	if o.Trace != "" {
		attrs = append(attrs, "trace", o.Trace)
	}
	if o.Caller.Handle != "" {
		attrs = append(attrs, "handle", o.Caller.Handle)
	}
	if o.Err != nil {
		attrs = append(attrs, "code", code, "err", cause(o.Err))
	}
	n.log.Log(context.Background(), level, "operation", attrs...)
}

func cause(err error) error {
	if e := protocol.AsError(err); e.Code == protocol.Internal && e.Err != nil {
		return e.Err
	}
	return err
}
