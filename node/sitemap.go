package node

import (
	"context"
	"strings"

	"stoa/node/door/web"
	"stoa/node/room/directory"
	"stoa/protocol"
	"stoa/storage"
	"stoa/wellknown"
)

// siteList implements wellknown.Site: it lists the pages that crawlers may index.
type siteList struct {
	db        *storage.DB
	directory *directory.Directory
}

func (s siteList) board() string { return protocol.BoardID(s.directory.Base) }

func (s siteList) Size(ctx context.Context) (profiles, posts int64, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		profiles, posts, err = tx.Site().Size(ctx, s.board())
		return err
	})
	return profiles, posts, err
}

// Pages are the pages without a parameter.
func (siteList) Pages() []string {
	var paths []string
	for _, e := range web.Entries() {
		if e.Kind == "page" && !strings.Contains(e.Path, "{") {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// feedDocuments are the feeds for feed readers, for the API catalog.
func feedDocuments() []wellknown.Feed {
	var feeds []wellknown.Feed
	for _, e := range web.Feeds() {
		media := map[bool]string{true: "application/atom+xml", false: "application/feed+json"}[strings.HasSuffix(e.Path, ".atom")]
		if !strings.Contains(e.Path, "{") {
			feeds = append(feeds, wellknown.Feed{Path: e.Path, Media: media, Title: e.Purpose})
		}
	}
	return feeds
}

func (s siteList) Agents(ctx context.Context, after, upTo int64) ([]wellknown.Location, error) {
	return s.locations(ctx, "/@", func(ctx context.Context, tx *storage.Tx) ([]storage.Listed, error) {
		return tx.Site().Profiles(ctx, after, upTo)
	})
}

func (s siteList) Posts(ctx context.Context, after, upTo int64) ([]wellknown.Location, error) {
	return s.locations(ctx, "/board/", func(ctx context.Context, tx *storage.Tx) ([]storage.Listed, error) {
		return tx.Site().Posts(ctx, s.board(), after, upTo)
	})
}

func (s siteList) locations(
	ctx context.Context, prefix string, list func(context.Context, *storage.Tx) ([]storage.Listed, error),
) ([]wellknown.Location, error) {
	var locations []wellknown.Location
	err := s.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := list(ctx, tx)
		for _, l := range found {
			locations = append(locations, wellknown.Location{Path: prefix + l.Name, Changed: l.Changed})
		}
		return err
	})
	return locations, err
}

func (s siteList) Profiles(ctx context.Context, after, upTo int64) ([]protocol.Profile, error) {
	var profiles []protocol.Profile
	err := s.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.Site().NumberedProfiles(ctx, after, upTo)
		for i := range found {
			profiles = append(profiles, s.directory.Profile(&found[i].StoredProfile))
		}
		return err
	})
	return profiles, err
}
