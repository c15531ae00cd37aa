package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	leastFree             = 512 << 20 // bytes, below which a disk is nearly full
	lowFree               = 1 << 30   // beside a copy of the database
	fullWithin, lowWithin = 7 * day, 30 * day

	sizes     = "database-sizes"
	sizeEvery = 20 * time.Hour
	maxSizes  = 30
)

// free is the system's word on the disk of a directory.
func free(dir string) (free, size int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}

// disk looks at the room where the data and the backups are, and how fast the database takes it.
func (d *Doctor) disk(ctx context.Context, _ *found) []protocol.Check {
	look := free
	if d.Free != nil {
		look = d.Free
	}
	bytes, daily, err := d.growth(ctx)
	if err != nil {
		return []protocol.Check{protocol.Unseen("disk", err.Error())}
	}
	var all []protocol.Check
	var fine []string
	for i, dir := range d.Dirs {
		left, size, err := look(dir)
		if err != nil {
			all = append(all, protocol.Unseen("disk", err.Error()))
			continue
		}
		grows := int64(0)
		seen := fmt.Sprintf("%s: %s of %s free", dir, mib(left), mib(size))
		if i == 0 && d.DB != nil && d.DB.Engine() == "sqlite" { // the database is there
			grows = daily
			seen += fmt.Sprintf("; the database has %s and grows by %s a day", mib(bytes), mib(daily))
		}
		full := grows > 0 && left/grows < int64(fullWithin/day)
		low := grows > 0 && left/grows < int64(lowWithin/day)
		switch {
		case left < leastFree || full:
			all = append(all, protocol.Found("disk-full", seen))
		case left < bytes+lowFree || low:
			all = append(all, protocol.Found("disk-low", seen))
		default:
			fine = append(fine, seen)
		}
	}
	if len(all) == 0 {
		all = []protocol.Check{protocol.Passed("disk", strings.Join(fine, "; "))}
	}
	return all
}

func mib(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// A sized is the size of the database at a time.
type sized struct {
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
}

// growth notes the size of the database, once a day, and returns it with how many bytes a day it grew over the last month.
func (d *Doctor) growth(ctx context.Context) (bytes, daily int64, err error) {
	if d.DB == nil {
		return 0, 0, nil
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		var all []sized
		raw, err := tx.Settings().Get(ctx, sizes)
		if err != nil {
			return err
		}
		if raw != "" {
			if err := json.Unmarshal([]byte(raw), &all); err != nil {
				return err
			}
		}
		if bytes, err = tx.Site().Bytes(ctx); err != nil {
			return err
		}
		if len(all) > 0 {
			if over := tx.Now.Sub(all[0].At); over >= day {
				daily = max(0, int64(float64(bytes-all[0].Bytes)/(float64(over)/float64(day))))
			}
		}
		if len(all) > 0 && tx.Now.Sub(all[len(all)-1].At) < sizeEvery {
			return nil
		}
		all = append(all, sized{tx.Now, bytes})
		next, err := json.Marshal(all[max(0, len(all)-maxSizes):])
		if err != nil {
			return err
		}
		return tx.Settings().Put(ctx, sizes, string(next))
	})
	return bytes, daily, err
}
