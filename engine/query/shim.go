package query

import (
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"go.mongodb.org/mongo-driver/v2/bson"
)

type SortX struct{ p key.Pattern }

func ParseSort(raw bson.Raw) (*SortX, error) {
	p, err := key.ParsePattern(raw)
	return &SortX{p}, err
}

func (s *SortX) Fields() []SortField {
	var out []SortField
	for _, f := range s.p.Fields {
		out = append(out, SortField{f.Path.String(), f.Kind == key.Descending})
	}
	return out
}

type SortField struct {
	Path       string
	Descending bool
}

func (s *SortX) Append(dst, doc []byte) []byte {
	var set key.Set
	dst, err := s.p.SortKey(dst, &set, doc)
	if err != nil {
		panic(err)
	}
	return dst
}

type ProjX struct{}

func (p *ProjX) Append(dst []byte, doc []byte, f *match.Filter) ([]byte, error) { return dst, nil }

func ParseProject(raw bson.Raw) (*ProjX, error) { return nil, mongoerr.NotImplemented.Errorf("projections are not there yet") }
