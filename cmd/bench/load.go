package main

import (
	"context"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// batchBytes is about how much one insertMany brings.
const batchBytes = 8 << 20

// load inserts documents from … to-1, in their order by one client, in large batches.
func (m *maker) load(ctx context.Context, c *mongo.Collection, from, to int64, seed uint64, p *progress) error {
	rng := newRand(seed, uint64(from))
	docs := make([]any, 0, min(to-from, int64(m.batch())))
	for from < to {
		docs = docs[:0]
		for ; from < to && len(docs) < m.batch(); from++ {
			docs = append(docs, m.doc(from, rng))
		}
		if _, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false)); err != nil {
			return err
		}
		p.add(int64(len(docs)))
	}
	return nil
}

// batch is how many documents go into one insertMany.
func (m *maker) batch() int { return max(1, min(batchBytes/m.size, 10_000)) }

// parallel runs f for 0 … n-1 at once, until all are done; the first error ends the others' context.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var first atomic.Pointer[error]
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				first.CompareAndSwap(nil, &err)
				cancel(err)
			}
		})
	}
	wg.Wait()
	if p := first.Load(); p != nil {
		return *p
	}
	return nil
}
