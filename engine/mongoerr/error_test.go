package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestFromKeepsCodeThroughWrapping(t *testing.T) {
	inner := DuplicateKey.New("E11000 duplicate key").With("keyValue", 1).Label("X")
	got := From(fmt.Errorf("insert: %w", inner))
	if got != inner || got.Code != 11000 || len(got.Extra) != 1 || got.Labels[0] != "X" {
		t.Fatalf("got %+v", got)
	}
	if !Is(fmt.Errorf("x: %w", inner), DuplicateKey) || Is(inner, BadValue) || Is(io.EOF, BadValue) {
		t.Fatal("Is")
	}
}

func TestFromGivesUnknownErrorsACode(t *testing.T) {
	if From(nil) != nil {
		t.Fatal("nil must stay nil")
	}
	for _, c := range []struct {
		err  error
		want Code
	}{{io.EOF, InternalError}, {context.Canceled, Interrupted}, {context.DeadlineExceeded, MaxTimeMSExpired}} {
		got := From(fmt.Errorf("at: %w", c.err))
		if got.Code != c.want || !errors.Is(got, c.err) {
			t.Errorf("From(%v) = %v", c.err, got)
		}
	}
	if err := BadValue.Errorf("open: %w", io.EOF); !errors.Is(err, io.EOF) || err.Error() != "BadValue: open: EOF" {
		t.Errorf("Errorf: %v", err)
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	base := BadValue.New("x").With("a", 1)
	one, two := base.With("b", 2), base.With("c", 3)
	if one.Extra[1].Key != "b" || two.Extra[1].Key != "c" || len(base.Extra) != 1 {
		t.Fatalf("shared fields: %v %v %v", base.Extra, one.Extra, two.Extra)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]Code{}
	for c, n := range names {
		if o, ok := seen[n]; ok {
			t.Errorf("%s is both %d and %d", n, c, o)
		}
		seen[n] = c
	}
	if BadValue.Name() != "BadValue" || Code(31249).Name() != "Location31249" || InvalidIDField.Name() != "InvalidIdField" {
		t.Fatal("names")
	}
}
