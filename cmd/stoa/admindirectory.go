package main

import (
	"fmt"
	"time"

	"stoa/protocol"
)

type adminDirectoryCmd struct {
	Follow   directoryURL     `cmd:"" op:"follow_directory" help:"Read a directory now and then daily, and have its entries found by ARD searches."`
	Unfollow directoryURL     `cmd:"" op:"unfollow_directory" help:"Read a directory no more, and delete its entries."`
	List     directoryListCmd `cmd:"" help:"The directories that the node follows, and their state."`
}

type directoryURL struct {
	act
	URL string `arg:"" json:"url" help:"An ai-catalog.json, the base address of an ARD registry, or https:// and a host."`
}

type directoryListCmd struct{}

func (c *directoryListCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.ListDirectories, protocol.None{}, func(found protocol.ARDDirectories) error {
		var lines [][]string
		for _, d := range found.Items {
			read := "-"
			if d.ReadAt != nil {
				read = d.ReadAt.Format(time.RFC3339)
			}
			lines = append(lines, []string{d.URL, d.Kind, d.State, fmt.Sprint(d.Entries), fmt.Sprint(d.Refused), read, d.Tag, d.LastError})
		}
		return all.rows(w, "address kind state entries refused read etag error", lines)
	})
}
