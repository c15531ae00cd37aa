package bench_test

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// answerReader reads HTTP/1.1 answers with a Content-Length off a connection
// and discards their bodies.
type answerReader struct{ r *bufio.Reader }

func newAnswerReader(r io.Reader) *answerReader { return &answerReader{bufio.NewReaderSize(r, 32<<10)} }

func (a *answerReader) next() error {
	length := -1
	for first := true; ; first = false {
		line, err := a.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if first && !strings.HasPrefix(text, "HTTP/1.1 200") {
			return errors.New(text)
		}
		if text == "" {
			break
		}
		if name, value, _ := strings.Cut(text, ":"); strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("answer without Content-Length")
	}
	_, err := a.r.Discard(length)
	return err
}
