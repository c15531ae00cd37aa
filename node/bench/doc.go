// Package bench measures a node: the figures of docs/PERFORMANCE.md that need one, and the questions that make bench-lists asks of
// filled databases, which tests ask of a small one.
package bench
