package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/big"
)

// runCommand does what the lines of in say, each with one line of answer: the number of
// the head, or "error:" and why.
//
//	mine N   add N blocks
//	final    add blocks until everything so far is final
//	fork N   replace the last N blocks by N+1 empty ones
func (c *Chain) runCommand(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := c.command(ctx, lines.Text())
		if err != nil {
			answer = "error: " + err.Error()
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (c *Chain) command(ctx context.Context, line string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, n := "", 0
	if _, err := fmt.Sscan(line, &name, &n); err != nil && name != "final" {
		return "", fmt.Errorf("not a command: %q", line)
	}
	switch name {
	case "mine":
	case "final":
		if _, err := c.finish(ctx); err != nil {
			return "", err
		}
	case "fork":
		head, err := c.backend.Client().BlockNumber(ctx)
		if err != nil || uint64(n) > head {
			return "", fmt.Errorf("fork %d of %d: %w", n, head, err)
		}
		parent, err := c.backend.Client().HeaderByNumber(ctx, new(big.Int).SetUint64(head-uint64(n)))
		if err != nil {
			return "", err
		}
		if err := c.backend.Fork(parent.Hash()); err != nil {
			return "", err
		}
		c.backend.Rollback() // the transactions of the old blocks are not included again
		n++
	default:
		return "", fmt.Errorf("not a command: %q", line)
	}
	for range n {
		if _, _, err := c.commit(ctx); err != nil {
			return "", err
		}
	}
	head, err := c.backend.Client().BlockNumber(ctx)
	return fmt.Sprint(head), err
}
