package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	checkUpSetting = "check-up" // name of the setting with the last examination
	examineFirst   = time.Hour  // after the first start
	examineEvery   = 24 * time.Hour
)

// Examinations have the node examine itself, each day and when an operator asks.
type Examinations struct {
	Look func(context.Context) protocol.CheckUp
}

// Again has it examined now.
func (Examinations) Again(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.None, error) {
	if _, err := tx.Jobs().DropNamed(ctx, storage.ExamineJob, string(storage.ExamineJob)); err != nil {
		return protocol.None{}, err
	}
	if err := enqueueExamine(ctx, tx, 0); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "examine", "", "")
}

func enqueueExamine(ctx context.Context, tx *storage.Tx, wait time.Duration) error {
	const name = string(storage.ExamineJob)
	return tx.Enqueue(ctx, storage.Job{Kind: storage.ExamineJob, Lane: name, Dedupe: name, RunAt: tx.Now.Add(wait)})
}

// Examine is the handler of ExamineJob.
func (e Examinations) Examine(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	found := e.Look(ctx)
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := KeepCheckUp(ctx, tx, found); err != nil {
			return err
		}
		return enqueueExamine(ctx, tx, examineEvery)
	}, nil
}

// KeepCheckUp stores what an examination found, for Health.
func KeepCheckUp(ctx context.Context, tx *storage.Tx, found protocol.CheckUp) error {
	found.At = tx.Now
	raw, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return tx.Settings().Put(ctx, checkUpSetting, string(raw))
}

// lastCheckUp returns what the last examination found, nil before the first.
func lastCheckUp(ctx context.Context, tx *storage.Tx) (*protocol.CheckUp, error) {
	raw, err := tx.Settings().Get(ctx, checkUpSetting)
	if err != nil || raw == "" {
		return nil, err
	}
	var found protocol.CheckUp
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		return nil, fmt.Errorf("the last examination: %w", err)
	}
	return &found, nil
}
