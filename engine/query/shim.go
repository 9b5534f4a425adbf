package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
)

type ProjX struct{}

func (p *ProjX) Append(dst []byte, doc []byte, f *match.Filter) ([]byte, error) { return dst, nil }

func ParseProject(raw bson.Raw) (*ProjX, error) {
	return nil, mongoerr.NotImplemented.Errorf("projections are not there yet")
}
