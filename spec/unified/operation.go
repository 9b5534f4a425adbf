package unified

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// action does an operation on an object of kind T. Its result is what bson.MarshalValue takes; nil is null. A result may stand beside an
// error. An action reads all of its arguments, asks args.done, and only then does anything.
type action[T any] func(ctx context.Context, r *run, on T, a *args) (any, error)

// The operations, by the object's kind and name.
var (
	clientActions = map[string]action[*client]{
		"clientBulkWrite":    clientBulkWrite,
		"close":              closeClient,
		"createChangeStream": watchClient,
		"listDatabaseNames":  listDatabaseNames,
		"listDatabases":      listDatabases,
	}
	databaseActions = map[string]action[*mongo.Database]{
		"aggregate":           aggregateDatabase,
		"createChangeStream":  watchDatabase,
		"createCollection":    createCollection,
		"createCommandCursor": createCommandCursor,
		"dropCollection":      dropCollection,
		"listCollectionNames": listCollectionNames,
		"listCollections":     listCollections,
		"modifyCollection":    modifyCollection,
		"runCommand":          runCommand,
		"runCursorCommand":    runCursorCommand,
	}
	collectionActions = map[string]action[*mongo.Collection]{
		"aggregate":              aggregate,
		"bulkWrite":              bulkWrite,
		"count":                  count,
		"countDocuments":         countDocuments,
		"createChangeStream":     watchCollection,
		"createFindCursor":       createFindCursor,
		"createIndex":            createIndex,
		"deleteMany":             deleteMany,
		"deleteOne":              deleteOne,
		"distinct":               distinct,
		"drop":                   dropThis,
		"dropIndex":              dropIndex,
		"dropIndexes":            dropIndexes,
		"estimatedDocumentCount": estimatedDocumentCount,
		"find":                   findMany,
		"findOne":                findOne,
		"findOneAndDelete":       findOneAndDelete,
		"findOneAndReplace":      findOneAndReplace,
		"findOneAndUpdate":       findOneAndUpdate,
		"insertMany":             insertMany,
		"insertOne":              insertOne,
		"listIndexNames":         listIndexNames,
		"listIndexes":            listIndexes,
		"rename":                 renameCollection,
		"replaceOne":             replaceOne,
		"updateMany":             updateMany,
		"updateOne":              updateOne,
	}
	bucketActions = map[string]action[*mongo.GridFSBucket]{
		"delete":         deleteFile,
		"download":       download,
		"downloadByName": downloadByName,
		"drop":           dropBucket,
		"rename":         renameFile,
		"upload":         upload,
	}
	sessionActions = map[string]action[*mongo.Session]{
		"abortTransaction":  abortTransaction,
		"commitTransaction": commitTransaction,
		"endSession":        endSession,
		"startTransaction":  startTransaction,
	}
	cursorActions = map[string]action[*cursor]{
		"close":                       closeCursor,
		"iterateOnce":                 iterateOnce,
		"iterateUntilDocumentOrError": iterateUntil,
	}
	runnerActions map[string]action[struct{}]
)

// Some operations run others, which would make the tables' initialization a circle.
func init() {
	sessionActions["withTransaction"] = withTransaction
	runnerActions = map[string]action[struct{}]{
		"assertCollectionExists":               assertCollectionExists,
		"assertCollectionNotExists":            assertCollectionNotExists,
		"assertDifferentLsidOnLastTwoCommands": assertDifferentLsid,
		"assertEventCount":                     assertEventCount,
		"assertIndexExists":                    assertIndexExists,
		"assertIndexNotExists":                 assertIndexNotExists,
		"assertNumberConnectionsCheckedOut":    assertCheckedOut,
		"assertSameLsidOnLastTwoCommands":      assertSameLsid,
		"assertSessionTransactionState":        undisclosed,
		"assertSessionDirty":                   undisclosed,
		"assertSessionNotDirty":                undisclosed,
		"assertSessionPinned":                  undisclosed,
		"assertSessionUnpinned":                undisclosed,
		"createEntities":                       createEntities,
		"failPoint":                            failPoint,
		"runOnThread":                          runOnThread,
		"targetedFailPoint":                    failPoint,
		"wait":                                 wait,
		"waitForEvent":                         waitForEvent,
		"waitForThread":                        waitForThread,
	}
}

// operate does an operation and judges its result or error.
func (r *run) operate(ctx context.Context, op operation) error {
	result, err := r.act(ctx, op)
	switch err.(type) {
	case skip, *unable:
		return err
	}
	if op.Ignore {
		return nil
	}
	value, bad := resultValue(result)
	if bad != nil {
		return bad
	}
	if op.Error != nil {
		if err == nil {
			return fmt.Errorf("no error, want %s; result %s", op.Error, show(value))
		}
		return r.match.matchError(op.Error, err, value)
	}
	if err != nil {
		return err
	}
	if op.Result.Type != 0 {
		if err := r.match.match("result", op.Result, value, true); err != nil {
			return err
		}
	}
	if op.SaveAs == "" {
		return nil
	}
	switch result.(type) {
	case *cursor, *mongo.Collection:
		return r.save(op.SaveAs, result)
	}
	return r.save(op.SaveAs, value)
}

// unable is what went wrong with the test, not with the server: never what an expectError asks for.
type unable struct{ err error }

func (u *unable) Error() string { return u.err.Error() }

// resultValue is a result as BSON.
func resultValue(result any) (bson.RawValue, error) {
	switch v := result.(type) {
	case *cursor, *mongo.Collection:
		return bson.RawValue{}, nil
	case bson.Raw:
		if v == nil {
			return bson.RawValue{Type: bson.TypeNull}, nil
		}
	case nil:
		return bson.RawValue{Type: bson.TypeNull}, nil
	case absent:
		return bson.RawValue{}, nil
	}
	t, data, err := bson.MarshalValue(result)
	return bson.RawValue{Type: t, Value: data}, err
}

// absent is the result of what gives none, such as a write that nobody acknowledges.
type absent struct{}

func (r *run) act(ctx context.Context, op operation) (any, error) {
	a := newArgs(op.Name, op.Arguments)
	if ms := a.get("timeoutMS"); ms.Type != 0 {
		if n := ms.AsInt64(); n > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*time.Millisecond)
			defer cancel()
		}
	}
	if op.Object == "testRunner" {
		return do(ctx, r, runnerActions, struct{}{}, op.Name, a)
	}
	if id := want(a, "session", asString); id != "" {
		s, err := find[*mongo.Session](r, id)
		if err != nil {
			return nil, &unable{err}
		}
		ctx = mongo.NewSessionContext(ctx, s)
	}
	object, err := r.lookup(op.Object)
	if err != nil {
		return nil, &unable{err}
	}
	switch on := object.(type) {
	case *client:
		return do(ctx, r, clientActions, on, op.Name, a)
	case *mongo.Database:
		return do(ctx, r, databaseActions, on, op.Name, a)
	case *mongo.Collection:
		return do(ctx, r, collectionActions, on, op.Name, a)
	case *mongo.GridFSBucket:
		return do(ctx, r, bucketActions, on, op.Name, a)
	case *mongo.Session:
		return do(ctx, r, sessionActions, on, op.Name, a)
	case *cursor:
		return do(ctx, r, cursorActions, on, op.Name, a)
	}
	return nil, &unable{fmt.Errorf("the entity %s has no operations", op.Object)}
}

func do[T any](ctx context.Context, r *run, table map[string]action[T], on T, name string, a *args) (any, error) {
	f := table[name]
	if f == nil {
		return nil, skip("the Go driver has no operation " + name)
	}
	return f(ctx, r, on, a)
}

// sortedKeys are a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
