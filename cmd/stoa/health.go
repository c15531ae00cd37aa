package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"stoa/node"
)

type healthCmd struct {
	node.Config `settings:"Settings of the node (stoa serve --help has all of them)" shown:"operator-listen"`
}

func (c *healthCmd) Help() string {
	return "Status 0 when it takes requests and reaches its database, which /readyz of the operator's address says."
}

func (c *healthCmd) Run(w *world) error {
	host, port, err := net.SplitHostPort(c.OperatorListen)
	if err != nil {
		return usagef("operator-listen: %q is not host:port", c.OperatorListen)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = ""
	}
	ctx, stop := context.WithTimeout(w.ctx, 10*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 1000))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the node is not ready: %s", strings.TrimSpace(string(said)))
	}
	_, err = w.stdout.Write(said)
	return err
}
