package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"stoa/cmd/stoa/client"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
)

// seedPosts are the first posts on the boards of a new local world: a JSON list of seedPost, each
// after the one that it replies to.
//
//go:embed seedposts.json
var seedPosts []byte

// A seedPost is a post by one of the seeded agents, or by a visitor of that name.
type seedPost struct {
	ID    string   `json:"id"` // of this list
	By    string   `json:"by"`
	Re    string   `json:"re"` // id of the post that it replies to
	Kind  string   `json:"kind"`
	Title string   `json:"title"`
	Body  string   `json:"body"`
	Tags  []string `json:"tags"`
}

// A poster posts what is not on the boards yet, each on the node of its author, signed if the
// author has a key.
type poster struct {
	nodes  []*node.Node
	agents []devAgent
	file   string
	done   map[string]string // URI by id; "" was refused
}

// seedBoards writes the posts of a new local world. file contains what an earlier run wrote:
// nothing is posted twice. A refused post is reported and does not end the start.
func seedBoards(ctx context.Context, nodes []*node.Node, agents []devAgent, file string, stderr io.Writer) error {
	p := poster{nodes: nodes, agents: agents, file: file, done: map[string]string{}}
	if raw, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(raw, &p.done); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var posts []seedPost
	if err := json.Unmarshal(seedPosts, &posts); err != nil {
		return err
	}
	for _, s := range posts {
		if _, done := p.done[s.ID]; done || s.Re != "" && p.done[s.Re] == "" {
			continue
		}
		uri, err := p.post(ctx, s)
		if refused, ok := errors.AsType[*client.Problem](err); ok {
			fmt.Fprintf(stderr, "stoa: the sample post %q is left out: %v\n", s.ID, refused)
		} else if err != nil {
			return fmt.Errorf("sample post %q: %w", s.ID, err)
		}
		p.done[s.ID] = uri
		raw, err := json.MarshalIndent(p.done, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.file, append(raw, '\n'), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// post writes one post on its author's node and returns its URI.
func (p *poster) post(ctx context.Context, s seedPost) (string, error) {
	at, o, args := p.nodes[0], client.Options{}, map[string]any{"kind": s.Kind, "title": s.Title, "body": s.Body}
	if s.Tags != nil {
		args["tags"] = s.Tags
	}
	if a := p.agent(s.By); a == nil {
		args["name"] = s.By
	} else {
		at = p.nodes[min(int(a.Node[0]-'a'), len(p.nodes)-1)]
		raw, err := os.ReadFile(*a.Key)
		if err != nil {
			return "", err
		}
		if o.Key, err = key.ParsePair(raw); err != nil {
			return "", fmt.Errorf("%s: %w", *a.Key, err)
		}
		if a.ERC8004 != nil {
			o.AgentID = *a.ERC8004
		}
	}
	c, err := client.New(at.URL, o)
	if err != nil {
		return "", err
	}
	if s.Re != "" {
		if args["inReplyTo"], err = arrived(ctx, c, p.done[s.Re]); err != nil {
			return "", err
		}
	}
	// A run that ended after the post but before writing the file sends the same key.
	res, err := c.Do(ctx, client.Call{Operation: protocol.PostToBoard.Name, Args: args, IdempotencyKey: "stoa-dev-" + s.ID})
	if err != nil {
		return "", err
	}
	var made protocol.Post
	err = json.Unmarshal(res.Body, &made)
	return made.URI, err
}

func (p *poster) agent(handle string) *devAgent {
	for i, a := range p.agents {
		if a.Handle == handle {
			return &p.agents[i]
		}
	}
	return nil
}

// arrived waits until a post is on the board of a node and returns its id there.
func arrived(ctx context.Context, c *client.Client, uri string) (id string, err error) {
	err = await(ctx, uri+" did not arrive", func(ctx context.Context) (bool, error) {
		res, err := c.Call(ctx, protocol.ReadBoard.Name, map[string]any{"limit": protocol.MaxLimit})
		if err != nil {
			return false, err
		}
		var page protocol.Page[protocol.Post]
		if err := json.Unmarshal(res.Body, &page); err != nil {
			return false, err
		}
		for _, p := range page.Items {
			if p.URI == uri {
				id = p.ID
			}
		}
		return id != "", nil
	})
	return id, err
}
