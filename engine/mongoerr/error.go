// Package mongoerr holds the errors that clients understand: a code with MongoDB's number and name, a message, and the fields
// that MongoDB adds to the reply for some codes (keyPattern and keyValue of 11000, errInfo of 121).
//
// Everything that a client did wrong, or that a client may act on, is an *Error:
//
//	return mongoerr.BadValue.Errorf("$in needs an array")
//	return mongoerr.DuplicateKey.New("E11000 duplicate key error ...").With("keyPattern", pattern).With("keyValue", key)
//
// An error is made once, where noun and place are known; callers above return it as it is. From turns whatever reaches the edge
// into an *Error: an error nobody gave a code is an InternalError.
package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Code is MongoDB's number of an error.
type Code int32

// Name is the code's codeName in replies; a code without a name of its own is "Location" with its number.
func (c Code) Name() string {
	if c == 0 {
		return "OK"
	}
	if n, ok := names[c]; ok {
		return n
	}
	return "Location" + strconv.Itoa(int(c))
}

func (c Code) String() string { return c.Name() }

// Errorf makes an error of this code. A %w in the format keeps its operand for errors.Is and errors.As.
func (c Code) Errorf(format string, args ...any) error { return c.New(format, args...) }

// New is Errorf for a caller that adds fields or labels.
func (c Code) New(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: c, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Is says whether err is, or wraps, an error of this code.
func Is(err error, c Code) bool {
	if err == nil {
		return false
	}
	var e *Error
	return errors.As(err, &e) && e.Code == c
}

// Error is an error as a reply shows it.
type Error struct {
	Code    Code
	Message string
	Extra   bson.D   // further fields of the reply, or of the writeErrors element
	Labels  []string // errorLabels

	cause error
}

func (e *Error) Error() string { return e.Code.Name() + ": " + e.Message }

func (e *Error) Unwrap() error { return e.cause }

// With returns a copy of e with one more field.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Extra = append(slices.Clip(e.Extra), bson.E{Key: name, Value: value})
	return &c
}

// Label returns a copy of e with one more error label.
func (e *Error) Label(label string) *Error {
	c := *e
	c.Labels = append(slices.Clip(e.Labels), label)
	return &c
}

// During says what was being done when err came up, as MongoDB's messages do. An error without a code stays as it is.
func During(what string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Message = what + " :: caused by :: " + e.Message
	return &c
}

// From is err as a client should see it; nil stays nil. A cancelled context is Interrupted, one past its deadline is
// MaxTimeMSExpired, an error without a code is an InternalError with err's text.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	code := InternalError
	switch {
	case errors.Is(err, context.Canceled):
		code = Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		code = MaxTimeMSExpired
	}
	return &Error{Code: code, Message: err.Error(), cause: err}
}
