package pipeline

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// sampleStage gives n documents by chance: those that drew the least numbers, in the order of these.
type sampleStage struct {
	n    int64
	opts *Options
}

func parseSample(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(28745).Errorf("the $sample stage specification must be an object")
	}
	s := &sampleStage{opts: p.opts}
	for it := value.Elements(arg.Value); it.Next(); {
		if string(it.Name()) != "size" {
			return nil, code(28748).Errorf("unrecognized option to $sample: %s", it.Name())
		}
		if !value.IsNumber(it.Value().Type) {
			return nil, code(28746).Errorf("size argument to $sample must be a number")
		}
		if s.n = value.TruncateInt64(it.Value()); s.n <= 0 {
			return nil, code(28747).Errorf("size argument to $sample must be a positive integer")
		}
	}
	if s.n == 0 {
		return nil, code(28749).Errorf("$sample stage must specify a size")
	}
	return s, nil
}

func (s *sampleStage) run(in Iterator) Iterator {
	var lot [8]byte
	return sortedBy(in, s.opts, s.n, func(doc bson.Raw, add func(key, doc []byte) error) error {
		if s.opts.Context.Rand == nil {
			return mongoerr.IllegalOperation.Errorf("$sample needs random numbers, which are not allowed here")
		}
		return add(binary.BigEndian.AppendUint64(lot[:0], s.opts.Context.Rand()), doc)
	}, documentsOf)
}
