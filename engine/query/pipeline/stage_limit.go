package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// limitStage lets the first n documents pass.
type limitStage struct{ n int64 }

func parseLimit(_ *parser, arg bson.RawValue) (stage, error) {
	n, ok := whole(arg)
	switch {
	case !ok || n < 0:
		return nil, code(5107201).Errorf("invalid argument to $limit stage: expected a non-negative number in: $limit: %s",
			value.Brief(arg, 100))
	case n == 0:
		return nil, code(15958).Errorf("the limit must be positive")
	}
	return &limitStage{n}, nil
}

// whole is a number that is an int64.
func whole(v bson.RawValue) (int64, bool) {
	if !value.IsNumber(v.Type) {
		return 0, false
	}
	return value.AsInt64(v)
}

func (s *limitStage) run(in Iterator) Iterator {
	left := s.n
	return over(in, func() (bson.Raw, error) {
		if left == 0 {
			return nil, nil
		}
		left--
		return in.Next()
	})
}

// skipStage lets all but the first n documents pass.
type skipStage struct{ n int64 }

func parseSkip(_ *parser, arg bson.RawValue) (stage, error) {
	n, ok := whole(arg)
	if !ok || n < 0 {
		return nil, code(5107200).Errorf("invalid argument to $skip stage: expected a non-negative number in: $skip: %s",
			value.Brief(arg, 100))
	}
	return &skipStage{n}, nil
}

func (s *skipStage) run(in Iterator) Iterator {
	left := s.n
	return over(in, func() (bson.Raw, error) {
		for ; left > 0; left-- {
			if doc, err := in.Next(); err != nil || doc == nil {
				return nil, err
			}
		}
		return in.Next()
	})
}
