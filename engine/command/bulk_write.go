package command

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// bulkWrite runs inserts, updates and deletes on several collections, in order. Neighbours of one kind on one collection go to
// the engine as one call and share its wait for the disk, unless the client wants to know of each what it did, which only of
// inserts is clear.
func bulkWrite(c *call) error {
	b := bulk{call: c, ordered: true}
	var ops, namespaces []bson.Raw
	batch := int64(math.MaxInt64)
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "ops":
			return true, f.documents(&ops)
		case "nsInfo":
			return true, f.documents(&namespaces)
		case "ordered":
			return true, f.bool(&b.ordered)
		case "errorsOnly":
			return true, f.bool(&b.errorsOnly)
		case "cursor":
			return true, f.cursorOptions(&batch)
		case "bypassDocumentValidation":
			return true, f.bool(&b.bypass)
		case "let":
			return true, f.document(&b.let)
		case "bypassEmptyTsReplacement":
			return true, f.unsupported()
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case ops == nil:
		return missing("bulkWrite", "ops")
	case namespaces == nil:
		return missing("bulkWrite", "nsInfo")
	}
	if err := checkBatch(len(ops)); err != nil {
		return err
	}
	if err := b.parse(ops, namespaces); err != nil {
		return err
	}
	for i := 0; i < len(b.ops) && !(b.ordered && b.errors > 0); {
		n := b.neighbours(i)
		if err := b.run(i, n); err != nil {
			return err
		}
		i += n
	}
	ns := engine.Namespace{DB: "admin", Coll: "$cmd.bulkWrite"}
	if err := c.cursorReply(&cursor{ns: ns, src: &b.results}, batch, false); err != nil {
		return err
	}
	c.out = bsoncore.AppendInt32Element(c.out, "nErrors", int32(b.errors))
	c.out = appendCount(c.out, "nInserted", int64(b.inserted))
	c.out = appendCount(c.out, "nMatched", int64(b.matched))
	c.out = appendCount(c.out, "nModified", int64(b.modified))
	c.out = appendCount(c.out, "nUpserted", int64(b.upserted))
	c.out = appendCount(c.out, "nDeleted", int64(b.deleted))
	return nil
}

// bulk is a bulkWrite under way.
type bulk struct {
	*call
	ordered, errorsOnly, bypass bool
	let                         bson.Raw
	ops                         []bulkOp
	results                     list

	errors, inserted, matched, modified, upserted, deleted int
}

// bulkOp is one of its operations: kind says which of the others is set.
type bulkOp struct {
	kind   string // insert, update, delete
	ns     engine.Namespace
	insert bson.Raw
	update engine.Update
	delete engine.Delete
}

func (b *bulk) parse(ops, namespaces []bson.Raw) error {
	names := make([]engine.Namespace, len(namespaces))
	for i, doc := range namespaces {
		var full string
		err := fieldsOf("bulkWrite.nsInfo", doc, func(f field) (bool, error) {
			return f.name == "ns", f.string(&full)
		})
		if err != nil {
			return err
		}
		db, coll, _ := strings.Cut(full, ".")
		names[i] = engine.Namespace{DB: db, Coll: coll}
		if err := names[i].Check(); err != nil {
			return err
		}
	}
	b.ops = make([]bulkOp, len(ops))
	for i, doc := range ops {
		op := &b.ops[i]
		it := value.Elements(doc)
		it.Next()
		op.kind = string(it.Name())
		ns := int64(-1)
		if value.IsNumber(it.Value().Type) {
			ns = whole(it.Value())
		}
		if ns < 0 || ns >= int64(len(names)) {
			return mongoerr.BadValue.Errorf("BulkWrite ops entry %d has an invalid nsInfo index.", i)
		}
		op.ns = names[ns]
		if op.kind != "insert" && op.kind != "update" && op.kind != "delete" {
			return mongoerr.BadValue.Errorf("BulkWrite has no operation '%s'", op.kind)
		}
		if err := op.read(doc); err != nil {
			return err
		}
		op.update.Let, op.delete.Let = b.let, b.let
	}
	return nil
}

// namesOf are the names that fields of bulkWrite's updates and deletes have in update and delete, where they differ.
var namesOf = map[string]string{"filter": "q", "updateMods": "u", "constants": "c", "q": "", "u": "", "c": ""}

func (op *bulkOp) read(doc bson.Raw) error {
	parent := "bulkWrite." + op.kind
	err := fieldsOf(parent, doc, func(f field) (bool, error) {
		if f.name == op.kind {
			return true, nil
		}
		name, ok := namesOf[f.name]
		if !ok {
			name = f.name
		}
		switch {
		case op.kind == "insert":
			return f.name == "document", f.document(&op.insert)
		case op.kind == "update":
			return f.ofUpdate(name, &op.update)
		case f.name == "multi":
			return true, f.bool(&op.delete.Multi)
		}
		return f.ofDelete(name, &op.delete)
	})
	switch {
	case err != nil:
		return err
	case op.kind == "insert" && op.insert == nil:
		return missing(parent, "document")
	case op.kind == "update":
		return checkUpdate(parent, "filter", "updateMods", &op.update)
	case op.kind == "delete" && op.delete.Filter == nil:
		return missing(parent, "filter")
	}
	return nil
}

// neighbours is how many operations from i on can be one call.
func (b *bulk) neighbours(i int) int {
	n := 1
	for i+n < len(b.ops) && b.ops[i+n].kind == b.ops[i].kind && b.ops[i+n].ns == b.ops[i].ns && (b.errorsOnly || b.ops[i].kind == "insert") {
		n++
	}
	return n
}

// run runs n operations from i on. An error is one that the command ends with.
func (b *bulk) run(i, n int) error {
	ns, ops := b.ops[i].ns, b.ops[i:i+n]
	switch ops[0].kind {
	case "insert":
		docs := make([]bson.Raw, n)
		for k := range ops {
			docs[k] = ops[k].insert
		}
		b.Dispatcher.ops.insert.Add(int64(n))
		res, err := b.db.Insert(b.writeContext(b.bypass), ns, docs, b.ordered)
		if err != nil {
			return err
		}
		b.inserted += res.N
		b.report(i, n, res.Errors, func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, "n", 1) })
	case "update":
		statements := make([]engine.Update, n)
		for k := range ops {
			statements[k] = ops[k].update
		}
		b.Dispatcher.ops.update.Add(int64(n))
		res, err := b.db.Update(b.writeContext(b.bypass), ns, statements, b.ordered)
		if err != nil {
			return err
		}
		b.matched += res.Matched
		b.modified += res.Modified
		b.upserted += len(res.Upserted)
		b.report(i, n, res.Errors, func(dst []byte) []byte {
			dst = appendCount(dst, "n", int64(res.Matched+len(res.Upserted)))
			dst = appendCount(dst, "nModified", int64(res.Modified))
			if len(res.Upserted) > 0 {
				dst = nested(dst, "upserted", func(dst []byte) []byte { return appendValue(dst, "_id", res.Upserted[0].ID) })
			}
			return dst
		})
	default:
		statements := make([]engine.Delete, n)
		for k := range ops {
			statements[k] = ops[k].delete
		}
		b.Dispatcher.ops.remove.Add(int64(n))
		res, err := b.db.Delete(b.ctx, ns, statements, b.ordered)
		if err != nil {
			return err
		}
		b.deleted += res.N
		b.report(i, n, res.Errors, func(dst []byte) []byte { return appendCount(dst, "n", int64(res.N)) })
	}
	return nil
}

// report adds the results of n operations from i on: the errors, and for each other one what done appends, if the client
// wants to know.
func (b *bulk) report(i, n int, errs []engine.WriteError, done func(dst []byte) []byte) {
	for k := range n {
		if len(errs) > 0 && errs[0].Index == k {
			e := mongoerr.From(errs[0].Err)
			errs = errs[1:]
			b.errors++
			b.results = append(b.results, document(func(dst []byte) []byte {
				dst = bsoncore.AppendDoubleElement(dst, "ok", 0)
				dst = bsoncore.AppendInt32Element(dst, "idx", int32(i+k))
				dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Code))
				dst = appendExtra(dst, e)
				dst = bsoncore.AppendStringElement(dst, "errmsg", e.Message)
				return bsoncore.AppendInt32Element(dst, "n", 0)
			}))
			if b.ordered {
				return
			}
			continue
		}
		if !b.errorsOnly {
			b.results = append(b.results, document(func(dst []byte) []byte {
				dst = bsoncore.AppendDoubleElement(dst, "ok", 1)
				dst = bsoncore.AppendInt32Element(dst, "idx", int32(i+k))
				return done(dst)
			}))
		}
	}
}
