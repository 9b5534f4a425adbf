package linearizability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// patience is how long a server may take for what a history asks of it, before the history counts as failed.
const patience = time.Minute

// timeouts is how often the clients of a history may give an operation up. Each stays open to the end of the history.
const timeouts = 5

// serving is one history of a real server under way.
type serving struct {
	program, dir string
	rng          *rand.Rand
	load         *workload
	rec          *recorder
	sessions     []*session
	gaveUp       atomic.Int32
	kills        int
}

// Serve makes a history of the server program, on a database in dir, that is killed while clients work. The seed decides
// what clients ask and about when the server is killed; what happens depends on the machine. name is as for Simulate.
func Serve(program, dir string, seed uint64, name string) (*History, error) {
	rng := rand.New(rand.NewPCG(seed, 2))
	load := workloadOf(name, seed)
	s := &serving{program: program, dir: dir, rng: rng, load: load, rec: new(recorder), sessions: newSessions(load, rng)}
	start := time.Now()
	s.rec.setClock(func() int64 { return int64(time.Since(start)) })
	err := s.run()
	h := &History{Seed: seed, World: "server", Workload: load.name, Crashes: s.kills, Ops: s.rec.ops, Opened: s.rec.ready}
	if err != nil {
		err = fmt.Errorf("%s: %w", h, err)
	}
	return h, err
}

func (s *serving) run() error {
	most := s.load.ops/2 + s.rng.IntN(s.load.ops/2)
	cuts := 1 + s.rng.IntN(3)
	for ; ; s.kills++ {
		if s.rng.IntN(3) == 0 { // killed while it starts, too
			p, err := launch(s.program, s.dir)
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Duration(s.rng.IntN(40)) * time.Millisecond):
			case <-p.ended:
				return fmt.Errorf("the server ended by itself: %v\n%s", p.err, &p.log)
			}
			_ = p.end(syscall.SIGKILL) // "signal: killed"
		}
		cut := 0
		if s.kills < cuts {
			cut = most*(s.kills+1)/(cuts+1) - s.rng.IntN(most/(cuts+1)/2+1)
		}
		p, err := launch(s.program, s.dir)
		if err != nil {
			return err
		}
		err = s.life(p, most, cut)
		select {
		case <-p.ended:
		default:
			_ = p.end(syscall.SIGKILL) // after an error: let nothing run on
		}
		if err != nil || cut == 0 {
			return err
		}
	}
}

// life is that of one server: until the history has cut operations, if cut is not 0, or is full.
func (s *serving) life(p *process, most, cut int) error {
	if err := p.wait(); err != nil {
		return err
	}
	conn, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.address).
		SetServerMonitoringMode("poll").SetRetryReads(false).SetRetryWrites(false).
		SetServerSelectionTimeout(patience))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer func() {
		cancel()
		_ = conn.Disconnect(ctx) // the server may be gone: the driver shall not look for it to say good-bye
	}()
	c := driverClient{conn.Database(database).Collection(collection)}
	if err := c.prepare(ctx, s.load); err != nil {
		return err
	}
	s.rec.recovered()

	var killed atomic.Bool
	var kill sync.Once
	die := func() {
		kill.Do(func() {
			killed.Store(true)
			_ = p.end(syscall.SIGKILL)
			cancel()
		})
	}
	failed := make(chan error, len(s.sessions))
	var wg sync.WaitGroup
	for _, session := range s.sessions {
		wg.Go(func() {
			for !killed.Load() {
				more, err := s.ask(ctx, c, session, s.load.next(session), most)
				if err != nil && !killed.Load() {
					failed <- err
				}
				if err != nil || !more {
					return
				}
				if cut > 0 && s.rec.full(cut) {
					die()
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	if cut > 0 {
		die() // the clients were faster
		return nil
	}
	s.load.last(func(in Input) {
		if _, asked := s.ask(ctx, c, s.sessions[0], in, 2*most); err == nil {
			err = asked
		}
	})
	if err == nil {
		err = p.end(syscall.SIGTERM)
	}
	return err
}

// ask lets a client ask one thing; more is false if the history is full. An error leaves the operation without a reply.
func (s *serving) ask(ctx context.Context, c driverClient, who *session, in Input, most int) (more bool, err error) {
	op := s.rec.call(who.client, in, most)
	if op < 0 {
		return false, nil
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if who.rng.IntN(30) == 0 && s.gaveUp.Add(1) <= timeouts {
		within, cancel = context.WithTimeout(ctx, time.Duration(200+who.rng.IntN(3000))*time.Microsecond)
	}
	defer cancel()
	out, err := c.do(within, in)
	switch {
	case err == nil:
		s.rec.reply(op, out)
		who.learn(in, out)
	case within != ctx && ctx.Err() == nil && (mongo.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded)):
		s.rec.gaveUp(op)
	default:
		return false, fmt.Errorf("client %d, %v: %w", who.client, in, err)
	}
	return true, nil
}
