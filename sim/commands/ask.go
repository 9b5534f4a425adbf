package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/sim/model"
)

// Way is how a search is made; the answer is the same each way.
type Way int

// The ways to search.
const (
	Plain    Way = iota
	Backward     // from the last record to the first
	Sorted       // by n, and the order is looked at
	Twice        // the collection and itself once more, in one pipeline and so in one snapshot
	ways
)

// asker has an engine do what the model's operations say.
type asker struct {
	db *engine.DB
	// pause is called between the documents of a search; nil: not.
	pause func()
	// forgives says whether an error may be the disk's fault. One that is not, and that the model does not know either, is an error of ask.
	forgives func(error) bool
}

// errLost is what ask answers if nobody knows what became of the operation.
var errLost = errors.New("the outcome is unknown")

// ask does one operation.
func (a *asker) ask(ctx context.Context, op *model.Op, way Way) (model.Outcome, error) {
	out, n, err := a.do(ctx, op, way)
	if err == nil {
		return out, nil
	}
	e := mongoerr.From(err)
	switch {
	case errors.Is(err, storage.ErrFailed) && a.forgives(err):
		return out, errLost
	case given[e.Code], a.forgives(err):
		return model.Outcome{Stopped: true, N: n}, nil
	case refusals[e.Code]:
		return model.Outcome{Reply: model.Failed(int(e.Code))}, nil
	}
	return out, err
}

// given are codes of commands that were given up: what they say of others that were under way is not looked into.
var given = map[mongoerr.Code]bool{mongoerr.Interrupted: true, mongoerr.MaxTimeMSExpired: true, mongoerr.IndexBuildAborted: true, mongoerr.BackgroundOperationInProgressForNamespace: true}

// refusals are codes that the model knows of commands as a whole.
var refusals = map[mongoerr.Code]bool{
	mongoerr.NamespaceNotFound: true, mongoerr.NamespaceExists: true, mongoerr.IndexNotFound: true, mongoerr.DuplicateKey: true,
}

// do gives the reply, or an error, and how many documents were changed before it; -1 is unknown.
func (a *asker) do(ctx context.Context, op *model.Op, way Way) (out model.Outcome, n int, err error) {
	ns := namespace(op.NS)
	reply := func(s string, err error) (model.Outcome, int, error) { return model.Outcome{Reply: s}, -1, err }
	switch op.Kind {
	case model.Insert:
		docs := make([]bson.Raw, len(op.Docs))
		for i, d := range op.Docs {
			docs[i] = encode(d)
		}
		r, err := a.db.Insert(ctx, ns, docs, op.Ordered)
		return a.wrote(r.N, r.N, false, r.Errors, err)
	case model.Update:
		r, err := a.db.Update(ctx, ns, []engine.Update{{Filter: filter(op.Filter), Update: update(op), Multi: op.Multi, Upsert: op.Upsert}}, true)
		return a.wrote(r.Matched, r.Modified, len(r.Upserted) > 0, r.Errors, err)
	case model.Delete:
		r, err := a.db.Delete(ctx, ns, []engine.Delete{{Filter: filter(op.Filter), Multi: op.Multi}}, true)
		return a.wrote(r.N, r.N, false, r.Errors, err)
	case model.Modify:
		f := engine.FindAndModify{Filter: filter(op.Filter), Remove: op.Remove, New: op.New, Upsert: op.Upsert}
		if !op.Remove {
			f.Update = update(op)
		}
		r, err := a.db.FindAndModify(ctx, ns, f)
		if err != nil || r.Value == nil {
			return reply(model.Gave(nil, r.Upserted != nil), err)
		}
		d, err := model.Decode(r.Value)
		return reply(model.Gave(d, r.Upserted != nil), err)
	case model.Find:
		docs, err := a.find(ctx, ns, op.Filter, way)
		return model.Outcome{Reply: model.Saw(docs), Docs: docs}, -1, err
	case model.Count:
		n, err := a.db.Count(ctx, ns, engine.Count{Filter: filter(op.Filter)})
		return reply(fmt.Sprint(n), err)
	case model.ListIndexes:
		list, err := a.indexes(ctx, ns)
		var names []string
		for _, x := range list {
			names = append(names, x.Name)
		}
		slices.Sort(names)
		return reply(strings.Join(names, " "), err)
	case model.CreateIndex:
		r, err := a.db.CreateIndexes(ctx, ns, []bson.Raw{spec(op.Index)})
		return reply(fmt.Sprintf("before %d after %d", r.Before, r.After), err)
	case model.DropIndex:
		before, err := a.db.DropIndexes(ctx, ns, bson.RawValue{Type: bson.TypeString, Value: text(op.Index.Name)})
		return reply(fmt.Sprintf("before %d", before), err)
	case model.Create:
		return reply("ok", a.db.CreateCollection(ctx, ns, nil))
	case model.Drop:
		existed, indexes, err := a.db.DropCollection(ctx, ns)
		if !existed {
			return reply("nothing", err)
		}
		return reply(fmt.Sprintf("dropped with %d indexes", indexes), err)
	case model.DropDB:
		existed, err := a.db.DropDatabase(ctx, op.NS)
		if !existed {
			return reply("nothing", err)
		}
		return reply("ok", err)
	case model.Rename:
		return reply("ok", a.db.RenameCollection(ctx, ns, namespace(op.To), op.Target))
	case model.Sweep:
		n, _, err := a.db.SweepTTL(ctx, time.UnixMilli(op.Now))
		return model.Outcome{Reply: fmt.Sprintf("removed %d", n)}, n, err
	}
	return out, 0, fmt.Errorf("no such operation: %v", op)
}

// wrote is the reply of a command that changes documents. A disk that is full refuses like a command that was stopped.
func (a *asker) wrote(n, modified int, upserted bool, refused []engine.WriteError, err error) (model.Outcome, int, error) {
	var errs strings.Builder
	for _, e := range refused {
		if a.forgives(e.Err) && err == nil {
			err = e.Err
		}
		errs.WriteString(model.Refused(e.Index, int(mongoerr.From(e.Err).Code)))
	}
	return model.Outcome{Reply: model.Wrote(n, modified, upserted, errs.String())}, n, err
}

// batchMax is more than any collection has.
const batchMax = 1 << 20

func (a *asker) find(ctx context.Context, ns engine.Namespace, by model.Filter, way Way) (docs []*model.Doc, err error) {
	f := engine.Find{Filter: filter(by)}
	var batch func(context.Context, int, func(bson.Raw) bool) (bool, error)
	switch way {
	case Backward:
		f.Hint = embedded(bson.D{{Key: "$natural", Value: -1}})
	case Sorted:
		f.Sort = raw(bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 1}})
	case Twice:
		both := []bson.Raw{raw(bson.D{{Key: "$match", Value: f.Filter}}),
			raw(bson.D{{Key: "$unionWith", Value: bson.D{{Key: "coll", Value: ns.Coll}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: f.Filter}}}}}}})}
		r, err := a.db.Aggregate(ctx, ns, engine.Aggregate{Stages: both})
		if err != nil {
			return nil, err
		}
		batch = r.Batch
	}
	if batch == nil {
		c, err := a.db.Find(ctx, ns, f)
		if err != nil {
			return nil, err
		}
		batch = c.Batch
	}
	var bad error
	more, err := batch(ctx, batchMax, func(b bson.Raw) bool {
		d, err := model.Decode(b)
		if err != nil {
			bad = err
			return false
		}
		docs = append(docs, d)
		if a.pause != nil {
			a.pause()
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, bad
	case more:
		return nil, errors.New("a batch without a bound left something")
	case way == Sorted && !slices.IsSortedFunc(docs, byN):
		return nil, errors.New("a sorted search gave documents in another order")
	case way == Twice:
		half := len(docs) / 2
		if len(docs)%2 != 0 || model.Saw(docs[:half]) != model.Saw(docs[half:]) {
			return nil, fmt.Errorf("a pipeline read %s twice in one snapshot, and the halves of its %d documents differ", ns, len(docs))
		}
		docs = docs[:half]
	}
	return docs, nil
}

func byN(a, b *model.Doc) int {
	x, y := a.Get("n"), b.Get("n")
	switch {
	case x.Kind != y.Kind:
		return int(x.Kind) - int(y.Kind) // only Missing and Int
	case x.N != y.N:
		if x.N < y.N {
			return -1
		}
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}
