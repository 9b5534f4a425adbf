package commands

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/sim"
	"github.com/multiforadb/multiforadb/sim/model"
	"github.com/multiforadb/multiforadb/sim/workload"
)

// program is one run.
type program struct {
	*workload.Frame
	opt     engine.Options
	history *model.History
	clients []*client
	ddl     atomic.Int32 // commands on collections and indexes that were begun
	defined atomic.Int32 // of those, how many have ended
}

// client is one that asks the database, one thing at a time.
type client struct {
	*program
	asker
	w     *sim.World
	name  string
	steps []step
	slow  int // yields between the documents of the search under way
	park  parked
}

// New makes the program of a run.
func New(u *workload.Frame, r *rand.Rand) (workload.Program, string) {
	p := &program{Frame: u, history: model.NewHistory(nil), opt: engine.Options{TTLSweep: -1, Storage: workload.Options(r)}}
	o := &p.opt.Storage
	o.CheckpointBytes *= 4
	m := mood{crowd: 1 + r.IntN(8), large: r.IntN(12) == 0, leash: r.IntN(3) == 0, simple: u.Profile == workload.Errors, ddl: []int{0, 3, 10}[r.IntN(3)]}
	if m.crowd > 4 {
		m.ddl = min(m.ddl, 3) // else there is too much that may have happened
	}
	most := 60 / (m.crowd + 2)
	if r.IntN(4) == 0 {
		most *= 3
	}
	d := newDrawer(rand.New(rand.NewPCG(r.Uint64(), 6)), m)
	for k := range m.crowd {
		name := fmt.Sprint("c", k)
		p.clients = append(p.clients, &client{program: p, name: name, steps: d.steps(name, most)})
	}
	return p, fmt.Sprintf("%+v, block %d, checkpoint at %d bytes or %d edits, fan-out %d", m, o.BlockSize, o.CheckpointBytes, o.CheckpointEdits, o.Tree.MaxEntries)
}

// Operations are how many were answered.
func (p *program) Operations() int { return p.history.Count() }

// Known is what a power cut may leave now.
func (p *program) Known() workload.Known { return &known{p.history.Cut(), p.opt, p.Seed} }

// Main runs the clients, and looks at what they leave.
func (p *program) Main(w *sim.World) {
	o := p.opt
	o.Env = w.Env()
	db, err := engine.Open(workload.Dir, o)
	if err != nil {
		w.Fail(fmt.Errorf("open: %w", err))
	}
	p.Fault.Arm()
	var tasks []func()
	for _, c := range p.clients {
		c.w = w
		c.asker = asker{db: db, pause: c.between, forgives: func(err error) bool { return p.forgives(db, err) }}
		tasks = append(tasks, c.run)
	}
	w.Parallel("client", tasks...)
	if db.Store().Failed() == nil {
		p.Fault.Disarm()
	}
	if err := p.settle(db); err != nil {
		w.Fail(err)
	}
}

// forgives says whether a failing call of the disk explains an error.
func (p *program) forgives(db *engine.DB, err error) bool {
	if !p.Fault.Hit() {
		return false
	}
	return !errors.Is(err, storage.ErrCorrupt)
}

// run does all the steps.
func (c *client) run() {
	for i, s := range c.steps {
		failed := false
		c.Do(c.name, i, s.String(), func() (outcome string) {
			outcome, failed = c.step(s)
			return outcome
		})
		if failed {
			return
		}
	}
}

// step does one, and says whether the database takes no more.
func (c *client) step(s step) (outcome string, failed bool) {
	switch {
	case s.jump != 0:
		c.w.Jump(s.jump)
		return "done", false
	case s.park != "":
		return c.parkOn(s.park), false
	case s.op == nil:
		return c.takeParked(s.take), false
	}
	op := s.op
	if s.clock {
		later := *op
		later.Now = c.w.Env().Clock.Now().UnixMilli()
		op = &later
	}
	if defines(op.Kind) {
		c.ddl.Add(1)
	}
	c.park.disturb(op)
	c.slow = s.pause
	ctx := context.Context(&leash{Context: context.Background(), w: c.w, until: c.w.Steps() + s.leash, tied: s.leash > 0})
	call := c.history.Begin(c.name, op)
	out, err := c.ask(ctx, op, s.way)
	switch {
	case errors.Is(err, errLost):
		// It stays pending: nobody knows.
		return err.Error(), true
	case err != nil:
		c.w.Fail(fmt.Errorf("%s, %v: %w", c.name, op, err))
	}
	if err := c.history.End(call, out); err != nil {
		c.w.Fail(err)
	}
	if defines(op.Kind) {
		c.defined.Add(1)
	}
	if op.Kind == model.Find {
		if err := c.hold(4 * s.pause); err != nil {
			c.w.Fail(err)
		}
	}
	return out.String(), false
}

// hold pins the newest snapshot for some time, in which none of its trees' pages may be touched.
func (c *client) hold(yields int) error {
	sn := c.db.Store().Snapshot()
	defer sn.Release()
	c.Judge.Visible(uint64(sn.LSN()))
	if yields == 0 {
		return nil
	}
	var refs []page.Ref
	err := sn.Guard(func() error {
		for _, id := range sn.Collections() {
			sc := sn.Collection(id)
			for _, number := range sc.Trees() {
				t, _ := sc.Tree(number)
				err := t.Walk(func(ref page.Ref, _ uint8, _ bool) error {
					refs = append(refs, ref)
					return nil
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	pin := c.Judge.Pin(refs)
	defer pin.Release()
	for range yields {
		c.w.Yield("holding a snapshot")
	}
	return nil
}

func defines(k model.OpKind) bool {
	switch k {
	case model.CreateIndex, model.DropIndex, model.Drop, model.DropDB, model.Rename:
		return true
	}
	return false
}

// between is called between the documents of a search, whose snapshot stays pinned.
func (c *client) between() {
	for range c.slow {
		c.w.Yield("between documents")
	}
}

// leash is a context that ends with a step of the world.
type leash struct {
	context.Context
	w     *sim.World
	until int
	tied  bool
}

func (l *leash) Deadline() (time.Time, bool) { return time.Time{}, false }

func (l *leash) Err() error {
	if l.tied && l.w.Steps() >= l.until {
		return context.DeadlineExceeded
	}
	return nil
}

// settle looks at the database when all clients are done, and closes it.
func (p *program) settle(db *engine.DB) error {
	a := asker{db: db, forgives: never}
	if db.Store().Failed() != nil {
		// It shows what is durable, and takes no more.
		r, err := db.Insert(context.Background(), namespace("a.things"), []bson.Raw{encode(model.NewDoc("late-0"))}, true)
		if err == nil && len(r.Errors) == 0 {
			return errors.New("a failed database took a write")
		}
	}
	state, err := a.observe()
	if err == nil {
		err = p.history.Cut().Judge(state)
	}
	if err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	if db.Store().Failed() != nil {
		_ = db.Close() // it has nothing more to say
		return nil
	}
	if p.Profile == workload.Recoverable {
		if err := tidy(db); err != nil {
			return err
		}
	}
	return db.Close()
}

// tidy demands that nothing is left over.
func tidy(db *engine.DB) error {
	for more := true; more; {
		var err error
		if more, err = db.Store().ClearStep(); err != nil {
			return err
		}
	}
	if err := db.Store().Checkpoint(); err != nil {
		return err
	}
	return sound(db)
}

// The programs that a case may name.
const (
	Storage  = "storage"  // package workload's, over the storage engine
	Commands = "commands" // this package's
)

// Programs are both.
var Programs = []string{Storage, Commands}

// Play runs a case of either program. If it names none, every second seed is this one's.
func Play(c workload.Case, told workload.Watch) workload.Result {
	if c.Program == Commands || c.Program == "" && c.Seed%2 == 1 {
		return workload.RunProgram(New, c, told)
	}
	return workload.RunCase(c, told)
}
