// Package resp writes Redis commands and finds the ends of replies in a
// stream of bytes. It is made for a load generator: replies are counted and
// classified, never turned into values, so that nothing is allocated for one.
// It is not a client: for that the project uses go-redis.
//
// The protocol is RESP2 and RESP3 as specified in
// https://redis.io/docs/latest/develop/reference/protocol-spec/. Streamed
// aggregates ("$?", "*?") are not supported: no server sends them.
package resp

import (
	"bytes"
	"fmt"
	"strconv"
)

// AppendCommand appends a command as an array of bulk strings.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = AppendArray(dst, len(args))
	for _, a := range args {
		dst = AppendBulk(dst, a)
	}
	return dst
}

// AppendArray appends the head of an array of n elements.
func AppendArray(dst []byte, n int) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

// AppendBulk appends a bulk string.
func AppendBulk(dst []byte, s string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

const (
	// maxLine bounds a line (a simple string, an error, a number). Redis
	// itself takes inline lines of at most 64 KiB.
	maxLine = 64 << 10
	// maxLength bounds a bulk string and an aggregate: beyond it the bytes
	// are no RESP. Redis allows proto-max-bulk-len up to a signed 64-bit
	// number, in practice 512 MB.
	maxLength = 1 << 40
)

// A SyntaxError says that the bytes received are not RESP. The stream cannot
// be used any further.
type SyntaxError struct {
	Text string
}

func (e *SyntaxError) Error() string { return "reading a reply: " + e.Text }

func syntaxError(format string, args ...any) error {
	return &SyntaxError{fmt.Sprintf(format, args...)}
}

// A Scanner finds the ends of replies in a stream that arrives in pieces of
// any size. The zero value is ready for the first byte of the first reply.
type Scanner struct {
	kind byte  // first byte of the reply; 0: its head has not come yet
	null bool  // the reply is a null
	left int64 // elements still to come of the reply; 0: between replies
	attr int64 // elements still to come of attributes before its head
	skip int64 // bytes still to come of a bulk string, its CRLF included

	line []byte // a line of which a part has arrived
	text []byte // the last top-level error, until the next call
}

// Scan reads from data up to the end of one reply, or all of data when the
// reply does not end in it. It returns how many bytes it has used and whether
// a reply is complete; then Kind, Null and ErrorText speak of this reply. An
// error is a *SyntaxError, after which the Scanner must not be used again.
func (s *Scanner) Scan(data []byte) (n int, done bool, err error) {
	if s.left == 0 {
		s.kind, s.left, s.null, s.text = 0, 1, false, s.text[:0]
	}
	for n < len(data) {
		if s.skip > 0 {
			m := min(s.skip, int64(len(data)-n))
			n += int(m)
			if s.skip -= m; s.skip > 0 {
				return n, false, nil
			}
			*s.counter()--
		} else {
			i := bytes.IndexByte(data[n:], '\n')
			if i < 0 {
				return len(data), false, s.keep(data[n:])
			}
			line := data[n : n+i+1]
			n += i + 1
			if len(s.line) > 0 {
				if err := s.keep(line); err != nil {
					return n, false, err
				}
				line = s.line
			}
			if err := s.element(line); err != nil {
				return n, false, err
			}
			s.line = s.line[:0]
		}
		if s.left == 0 {
			return n, true, nil
		}
	}
	return n, false, nil
}

// keep stores a part of a line.
func (s *Scanner) keep(part []byte) error {
	if len(s.line)+len(part) > maxLine {
		return syntaxError("a line of over %d bytes", maxLine)
	}
	s.line = append(s.line, part...)
	return nil
}

// counter returns the count of elements that the next element belongs to:
// the reply's, or that of the attributes before it.
func (s *Scanner) counter() *int64 {
	if s.attr > 0 {
		return &s.attr
	}
	return &s.left
}

// element takes the line, ended by CRLF, with which an element begins.
func (s *Scanner) element(line []byte) error {
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return syntaxError("%.40q is not a RESP line; is this a Redis port?", line)
	}
	kind, body := line[0], line[1:len(line)-2]
	head := s.kind == 0 && s.attr == 0 && kind != '|'
	if head {
		s.kind = kind
	}
	switch kind {
	case '+', ':', ',', '#', '(':
	case '_':
		s.null = s.null || head
	case '-':
		if head {
			s.text = append(s.text[:0], body...)
		}
	case '$', '=', '!':
		n, err := length(body)
		if err != nil {
			return err
		}
		if n >= 0 {
			s.skip = n + 2
			return nil // the element ends with its payload
		}
		s.null = s.null || head
	case '*', '~', '>', '%', '|':
		return s.aggregate(kind, body, head)
	default:
		return syntaxError("%.40q is not a RESP line; is this a Redis port?", line)
	}
	*s.counter()--
	return nil
}

// aggregate adds the elements of an aggregate to those still to come. There
// is no stack of open aggregates: the reply ends when none is left.
func (s *Scanner) aggregate(kind byte, body []byte, head bool) error {
	n, err := length(body)
	if err != nil {
		return err
	}
	if n < 0 {
		s.null = s.null || head
		n = 0
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	counter := s.counter()
	switch {
	case kind != '|':
		n-- // the aggregate itself has come
	case s.kind == 0:
		counter = &s.attr
	}
	*counter += n
	if *counter > maxLength {
		return syntaxError("a reply of over %d elements", int64(maxLength))
	}
	return nil
}

// length reads the length of a bulk string or of an aggregate; -1 is null.
func length(body []byte) (int64, error) {
	if len(body) == 2 && body[0] == '-' && body[1] == '1' {
		return -1, nil
	}
	if len(body) == 0 || len(body) > 13 {
		return 0, syntaxError("%.40q is not a length", body)
	}
	var n int64
	for _, c := range body {
		if c < '0' || c > '9' {
			return 0, syntaxError("%.40q is not a length", body)
		}
		n = n*10 + int64(c-'0')
	}
	if n > maxLength {
		return 0, syntaxError("a length of %d", n)
	}
	return n, nil
}

// Kind returns the first byte of the reply just completed: '+', '-', ':',
// '$', '*' and so on. '>' is a push message, which answers no command.
func (s *Scanner) Kind() byte { return s.kind }

// Null reports whether the reply just completed is a null (a GET that
// missed, say).
func (s *Scanner) Null() bool { return s.null }

// ErrorText returns the text of the error reply just completed, without "-";
// it is valid until the next call of Scan. It is empty when the reply is no
// error, and for a RESP3 bulk error, which no server sends at the top level.
func (s *Scanner) ErrorText() []byte { return s.text }

// IsError reports whether the reply just completed is an error.
func (s *Scanner) IsError() bool { return s.kind == '-' || s.kind == '!' }
