package unified

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// TestTimeout is what one test may take.
const TestTimeout = 30 * time.Second

// Server is what tests are run against: a single server.
type Server struct {
	Address    string
	Version    string
	Parameters bson.Raw
	FailPoints bool // it can be told to fail
	admin      *mongo.Client
}

// Dial asks a server what it is. Close it after use.
func Dial(ctx context.Context, address string) (*Server, error) {
	c, err := mongo.Connect(options.Client().SetServerMonitoringMode("poll").ApplyURI("mongodb://" + address).SetServerSelectionTimeout(selectionTimeout))
	if err != nil {
		return nil, err
	}
	s := &Server{Address: address, admin: c}
	var info struct{ Version string }
	if err := s.command(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	s.Version = info.Version
	if s.Parameters, err = s.command(ctx, bson.D{{Key: "getParameter", Value: "*"}}).Raw(); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	s.FailPoints = s.command(ctx, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}).Err() == nil
	return s, nil
}

func (s *Server) command(ctx context.Context, cmd any) *mongo.SingleResult {
	return s.admin.Database("admin").RunCommand(ctx, cmd)
}

// Close ends the connection that Dial made.
func (s *Server) Close(ctx context.Context) error { return s.admin.Disconnect(ctx) }

// Verdict is how a test ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip"
)

// Outcome is a verdict, and for Fail and Skip the reason.
type Outcome struct {
	Verdict Verdict
	Reason  string
}

// run is one test under way.
type run struct {
	server   *Server
	match    *matcher
	clients  []*mongo.Client
	sessions []*mongo.Session

	mu       sync.Mutex // threads of a test share what follows
	cursors  []*cursor
	entities map[string]any
}

// Run runs a test of a file.
func (s *Server) Run(ctx context.Context, f *File, t *Test) Outcome {
	err := s.run(ctx, f, t)
	var reason skip
	switch {
	case err == nil:
		return Outcome{Verdict: Pass}
	case errors.As(err, &reason):
		return Outcome{Skip, string(reason)}
	}
	return Outcome{Fail, err.Error()}
}

func (s *Server) run(ctx context.Context, f *File, t *Test) (err error) {
	if err := admitSchema(f.Schema); err != nil {
		return err
	}
	if t.SkipReason != "" {
		line, _, _ := strings.Cut(t.SkipReason, "\n")
		return skip("the test says: " + line)
	}
	if err := errors.Join(s.admit(f.RunOn), s.admit(t.RunOn)); err != nil {
		var reason skip
		errors.As(err, &reason)
		return reason
	}
	if len(t.Logs) > 0 {
		return skip("client feature: log messages")
	}
	if !s.FailPoints && usesFailPoint(t) {
		return skip("needs fail points")
	}
	// Not a deadline: the driver would tell the server of it in every command.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(TestTimeout, cancel).Stop()
	for _, data := range f.Initial {
		if err := s.fill(ctx, data); err != nil {
			return fmt.Errorf("initial data: %w", err)
		}
	}
	r := &run{server: s, entities: make(map[string]any)}
	r.match = &matcher{entity: r.value, lsid: r.lsid}
	defer r.close()
	for _, e := range f.Entities {
		if err := r.create(e); err != nil {
			return err
		}
	}
	for i, op := range t.Operations {
		if err := r.operate(ctx, op); err != nil {
			return fmt.Errorf("operation %d, %s: %w", i, op.Name, err)
		}
	}
	for _, e := range t.Events {
		c, err := find[*client](r, e.Client)
		if err != nil {
			return err
		}
		if err := r.match.matchEvents(e, c.rec); err != nil {
			return err
		}
	}
	for _, data := range t.Outcome {
		if err := s.left(ctx, data); err != nil {
			return err
		}
	}
	return nil
}

// usesFailPoint says whether a test lets the server fail on purpose.
func usesFailPoint(t *Test) bool {
	for _, op := range t.Operations {
		if op.Name == "failPoint" || op.Name == "targetedFailPoint" {
			return true
		}
	}
	return false
}

// close ends what the test has begun, so that the next finds nothing of it.
func (r *run) close() {
	ctx, cancel := context.WithTimeout(context.Background(), selectionTimeout)
	defer cancel()
	for _, c := range r.cursors {
		c.Close(ctx)
	}
	for _, s := range r.sessions {
		s.EndSession(ctx)
	}
	for _, c := range r.clients {
		_ = c.Disconnect(ctx) // it may be closed already
	}
}

// fill makes a collection that holds data alone.
func (s *Server) fill(ctx context.Context, data collectionData) error {
	db := s.admin.Database(data.Database)
	c := db.Collection(data.Collection, options.Collection().SetWriteConcern(writeconcern.Majority()))
	if err := c.Drop(ctx); err != nil {
		return err
	}
	if len(data.Documents) == 0 || data.Options != nil {
		create := bson.D{{Key: "create", Value: data.Collection}}
		if elements, err := data.Options.Elements(); err == nil {
			for _, e := range elements {
				create = append(create, bson.E{Key: e.Key(), Value: e.Value()})
			}
		}
		if err := db.RunCommand(ctx, create).Err(); err != nil {
			return err
		}
	}
	if len(data.Documents) == 0 {
		return nil
	}
	_, err := c.InsertMany(ctx, data.Documents)
	return err
}

// left compares what is left in a collection with what should be, to the last field.
func (s *Server) left(ctx context.Context, data collectionData) error {
	c := s.admin.Database(data.Database).Collection(data.Collection, options.Collection().SetReadConcern(readconcern.Local()))
	cur, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return fmt.Errorf("outcome: %w", err)
	}
	got := []bson.Raw{}
	if err := cur.All(ctx, &got); err != nil {
		return fmt.Errorf("outcome: %w", err)
	}
	if len(got) != len(data.Documents) {
		return fmt.Errorf("outcome: %s holds %v, want %v", c.Name(), got, data.Documents)
	}
	for i, doc := range data.Documents {
		want := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
		if err := (&matcher{}).match(fmt.Sprintf("outcome: %s.%d", c.Name(), i), want, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got[i]}, false); err != nil {
			return err
		}
	}
	return nil
}

// value is a result kept as an entity.
func (r *run) value(id string) (bson.RawValue, error) { return find[bson.RawValue](r, id) }

// lsid is a session's id.
func (r *run) lsid(id string) (bson.RawValue, error) {
	s, err := find[*mongo.Session](r, id)
	if err != nil {
		return bson.RawValue{}, err
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: s.ID()}, nil
}
