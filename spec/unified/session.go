package unified

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func startTransaction(_ context.Context, _ *run, s *mongo.Session, a *args) (any, error) {
	o := transactionOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, s.StartTransaction(o)
}

func commitTransaction(ctx context.Context, _ *run, s *mongo.Session, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, s.CommitTransaction(ctx)
}

func abortTransaction(ctx context.Context, _ *run, s *mongo.Session, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, s.AbortTransaction(ctx)
}

func endSession(ctx context.Context, _ *run, s *mongo.Session, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	s.EndSession(ctx)
	return nil, nil
}

func withTransaction(ctx context.Context, r *run, s *mongo.Session, a *args) (any, error) {
	docs := need(a, "callback", asDocuments)
	o := transactionOptions(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	var ops []operation
	for _, d := range docs {
		op, err := parseOperation(d)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		for _, op := range ops {
			if err := r.operate(ctx, op); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}, o)
}

// parseOperation reads an operation that is an argument of another.
func parseOperation(doc bson.Raw) (op operation, err error) {
	err = bson.Unmarshal(doc, &op)
	return op, err
}

// undisclosed is what the driver keeps of a session to itself.
func undisclosed(context.Context, *run, struct{}, *args) (any, error) {
	return nil, skip("client feature: the state of a session, which the Go driver does not show")
}

func assertSameLsid(_ context.Context, r *run, _ struct{}, a *args) (any, error) {
	return assertLsids(r, a, true)
}

func assertDifferentLsid(_ context.Context, r *run, _ struct{}, a *args) (any, error) {
	return assertLsids(r, a, false)
}

func assertLsids(r *run, a *args, same bool) (any, error) {
	c, err := find[*client](r, need(a, "client", asString))
	if err != nil {
		return nil, &unable{err}
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	started := c.rec.started
	if len(started) < 2 {
		return nil, fmt.Errorf("the client sent %d commands, want two or more", len(started))
	}
	x, y := started[len(started)-2].Lookup("lsid"), started[len(started)-1].Lookup("lsid")
	if x.Type == 0 || y.Type == 0 || x.Equal(y) != same {
		return nil, fmt.Errorf("the last two commands have the sessions %s and %s", show(x), show(y))
	}
	return nil, nil
}
