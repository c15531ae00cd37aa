package storage

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"stoa/protocol/sorting"
)

// A Device is a browser that is sent notices by Web Push.
type Device struct {
	ID           string
	Reader       string // an account, or the reader name of a thread, bid or meeting request
	Endpoint     string // of the push service
	P256dh, Auth []byte // keys of the subscription (RFC 8291 §3)
	Language     string // code
	Program      string // the browser's name for itself
	CreatedAt    time.Time
	EndsAt       time.Time `db:",null"` // zero for an account's
}

var deviceTable = tableOf[Device]("device")

// Devices reads and writes the browsers that are sent notices.
type Devices struct{ tx *Tx }

func (tx *Tx) Devices() Devices { return Devices{tx} }

// Put stores a device in place of an earlier one of the same reader and endpoint, and deletes the oldest of the reader beyond the
// newest most.
func (ds Devices) Put(ctx context.Context, d Device, most int) error {
	if err := ds.tx.exec(ctx, `DELETE FROM device WHERE reader = ? AND endpoint = ?`, d.Reader, d.Endpoint); err != nil {
		return err
	}
	d.CreatedAt = ds.tx.Now
	if err := deviceTable.insert(ctx, ds.tx, &d); err != nil {
		return err
	}
	return ds.tx.exec(ctx, `DELETE FROM device WHERE reader = ? AND id NOT IN (SELECT id FROM device WHERE reader = ? ORDER BY id DESC LIMIT ?)`,
		d.Reader, d.Reader, most)
}

// Renew gives every subscription at an endpoint another one, which a browser got in its place.
func (ds Devices) Renew(ctx context.Context, former string, d Device) error {
	const both = `DELETE FROM device WHERE endpoint = ? AND reader IN (SELECT reader FROM device WHERE endpoint = ?)`
	if err := ds.tx.exec(ctx, both, d.Endpoint, former); err != nil {
		return err
	}
	return ds.tx.exec(ctx, `UPDATE device SET endpoint = ?, p256dh = ?, auth = ? WHERE endpoint = ?`, d.Endpoint, d.P256dh, d.Auth, former)
}

const devicesOf = ` WHERE reader = ? LIMIT 100` // more than any has

// Of returns the devices of a reader, newest first.
func (ds Devices) Of(ctx context.Context, reader string) ([]Device, error) {
	found, err := list[Device](ctx, ds.tx, deviceTable.from+devicesOf, reader)
	sorting.Stable(found, func(a, b Device) int { return strings.Compare(b.ID, a.ID) })
	return found, err
}

// ByID returns a device; ErrNotFound when there is none.
func (ds Devices) ByID(ctx context.Context, id string) (Device, error) {
	return find[Device](ctx, ds.tx, deviceTable.from+`WHERE id = ?`, id)
}

// Delete deletes a device of a reader; ErrNotFound when it has none of that id.
func (ds Devices) Delete(ctx context.Context, reader, id string) error {
	return one(ds.tx.write(ctx, `DELETE FROM device WHERE reader = ? AND id = ?`, reader, id))
}

// Drop deletes what the push service at an endpoint no longer delivers.
func (ds Devices) Drop(ctx context.Context, endpoint string) error {
	return ds.tx.exec(ctx, `DELETE FROM device WHERE endpoint = ?`, endpoint)
}

// A Push is the arguments of PushJob: what a device is told.
type Push struct {
	Device string          `json:"device"`
	Kind   string          `json:"kind,omitempty"`   // of news, for the reader of a thread, bid or meeting request
	Notice json.RawMessage `json:"notice,omitempty"` // protocol.Notice, for an owner
}

// Enqueue queues what a reader is to be told for each of its devices; until it is sent, another of the same dedupe key is the same.
func (ds Devices) Enqueue(ctx context.Context, reader, dedupe string, p Push) error {
	ids, err := list[string](ctx, ds.tx, `SELECT id FROM device`+devicesOf, reader)
	if err != nil {
		return err
	}
	for _, id := range ids {
		p.Device = id
		args, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := ds.tx.Enqueue(ctx, Job{Kind: PushJob, Lane: pushLane(reader, id), Args: args, Dedupe: string(PushJob) + " " + id + " " + dedupe}); err != nil {
			return err
		}
	}
	return nil
}

// pushLane returns one of four lanes, other ones for devices of strangers: push services that do not answer hold up their own.
func pushLane(reader, id string) string {
	lane := "push:"
	if strings.Contains(reader, ":") {
		lane = "push-visitors:"
	}
	return lane + string('0'+id[len(id)-1]%4)
}
