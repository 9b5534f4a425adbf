package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func createEntities(_ context.Context, r *run, _ struct{}, a *args) (any, error) {
	docs := need(a, "entities", asDocuments)
	if err := a.done(); err != nil {
		return nil, err
	}
	for _, d := range docs {
		if err := r.create(d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// failPoint tells the server to fail. A test that comes here has been admitted, so the server can be told.
func failPoint(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	for _, who := range []string{"client", "session"} {
		a.get(who) // there is one server
	}
	command := need(a, "failPoint", asDocument)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, r.server.command(ctx, command).Err()
}

func assertCollectionExists(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	return r.assertCollection(ctx, a, true)
}

func assertCollectionNotExists(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	return r.assertCollection(ctx, a, false)
}

func (r *run) assertCollection(ctx context.Context, a *args, wanted bool) (any, error) {
	db, name := need(a, "databaseName", asString), need(a, "collectionName", asString)
	if err := a.done(); err != nil {
		return nil, err
	}
	names, err := r.server.admin.Database(db).ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, name) != wanted {
		return nil, fmt.Errorf("the collections of %s are %v", db, names)
	}
	return nil, nil
}

func assertIndexExists(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	return r.assertIndex(ctx, a, true)
}

func assertIndexNotExists(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	return r.assertIndex(ctx, a, false)
}

func (r *run) assertIndex(ctx context.Context, a *args, wanted bool) (any, error) {
	db, coll, name := need(a, "databaseName", asString), need(a, "collectionName", asString), need(a, "indexName", asString)
	if err := a.done(); err != nil {
		return nil, err
	}
	specs, err := r.server.admin.Database(db).Collection(coll).Indexes().ListSpecifications(ctx)
	var gone mongo.CommandError
	if errors.As(err, &gone) && gone.Name == "NamespaceNotFound" {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	has := slices.ContainsFunc(specs, func(s mongo.IndexSpecification) bool { return s.Name == name })
	if has != wanted {
		return nil, fmt.Errorf("the index %s of %s.%s: there %t, want %t", name, db, coll, has, wanted)
	}
	return nil, nil
}

func assertCheckedOut(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	c, err := find[*client](r, need(a, "client", asString))
	if err != nil {
		return nil, &unable{err}
	}
	n := need(a, "connections", asInt64)
	if err := a.done(); err != nil {
		return nil, err
	}
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	if int64(c.rec.out) != n {
		return nil, fmt.Errorf("%d connections are checked out, want %d", c.rec.out, n)
	}
	return nil, nil
}

func eventArguments(r *run, a *args) (c *client, want bson.Raw, n int, err error) {
	if c, err = find[*client](r, need(a, "client", asString)); err != nil {
		return nil, nil, 0, &unable{err}
	}
	want, n = need(a, "event", asDocument), int(need(a, "count", asInt64))
	return c, want, n, a.done()
}

func assertEventCount(_ context.Context, r *run, _ struct{}, a *args) (any, error) {
	c, want, n, err := eventArguments(r, a)
	if err != nil {
		return nil, err
	}
	if got, _ := r.match.count(c.rec, want); got != n {
		return nil, fmt.Errorf("%d events %s, want %d", got, want, n)
	}
	return nil, nil
}

func waitForEvent(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	c, want, n, err := eventArguments(r, a)
	if err != nil {
		return nil, err
	}
	for {
		got, news := r.match.count(c.rec, want)
		if got >= n {
			return nil, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, &unable{fmt.Errorf("%d events %s came, want %d: %w", got, want, n, ctx.Err())}
		}
	}
}

// thread does operations in their order, beside the test's own.
type thread struct {
	last chan error // holds the outcome of all so far, once they are done
}

func newThread() *thread {
	t := &thread{make(chan error, 1)}
	t.last <- nil
	return t
}

func runOnThread(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	t, err := find[*thread](r, need(a, "thread", asString))
	if err != nil {
		return nil, &unable{err}
	}
	op, err := parseOperation(need(a, "operation", asDocument))
	if err != nil {
		return nil, &unable{err}
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	before, after := t.last, make(chan error, 1)
	t.last = after
	go func() {
		err := <-before
		if err == nil {
			err = r.operate(ctx, op)
		}
		after <- err
	}()
	return nil, nil
}

func waitForThread(ctx context.Context, r *run, _ struct{}, a *args) (any, error) {
	t, err := find[*thread](r, need(a, "thread", asString))
	if err != nil {
		return nil, &unable{err}
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	select {
	case err := <-t.last:
		t.last <- err
		return nil, err
	case <-ctx.Done():
		return nil, &unable{ctx.Err()}
	}
}
