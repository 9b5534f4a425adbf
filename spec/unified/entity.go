package unified

import (
	"fmt"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// client is a client entity, with what it saw.
type client struct {
	*mongo.Client
	rec *recorder
}

// create makes one entity of {kind: {id: …, …}}.
func (r *run) create(doc bson.Raw) error {
	elements, err := doc.Elements()
	if err != nil {
		return err
	}
	if len(elements) != 1 {
		return fmt.Errorf("unified: an entity of %d kinds: %s", len(elements), doc)
	}
	kind := elements[0].Key()
	fields, ok := elements[0].Value().DocumentOK()
	if !ok {
		return fmt.Errorf("unified: an entity that is no document: %s", doc)
	}
	a := newArgs(kind, fields)
	id := need(a, "id", asString)
	var made any
	switch kind {
	case "client":
		made, err = r.createClient(a)
	case "database":
		made, err = r.createDatabase(a)
	case "collection":
		made, err = r.createCollection(a)
	case "session":
		made, err = r.createSession(a)
	case "bucket":
		made, err = r.createBucket(a)
	case "thread":
		made, err = newThread(), a.done()
	case "clientEncryption", "encryptedClient":
		return skip("client feature: client-side encryption")
	default:
		return fmt.Errorf("unified: an entity of the unknown kind %s", kind)
	}
	if err != nil {
		return err
	}
	return r.save(id, made)
}

func (r *run) createClient(a *args) (any, error) {
	if a.has("storeEventsAsEntities") {
		return nil, skip("client feature: events kept as entities")
	}
	if a.has("autoEncryptOpts") {
		return nil, skip("client feature: client-side encryption")
	}
	for _, idle := range []string{"useMultipleMongoses", "observeLogMessages"} {
		a.get(idle) // of one server there is nothing to choose, and logs are not judged
	}
	rec := &recorder{observe: map[string]bool{}, ignore: map[string]bool{}, news: make(chan struct{})}
	for list, to := range map[string]map[string]bool{"observeEvents": rec.observe, "ignoreCommandMonitoringEvents": rec.ignore} {
		for _, name := range want(a, list, asList) {
			s, _ := name.(string)
			to[s] = true
		}
	}
	rec.sensitive = want(a, "observeSensitiveCommands", asBool)
	uriOptions := want(a, "uriOptions", asDocument)
	uri, err := r.server.uri(uriOptions)
	if err != nil {
		return nil, err
	}
	// A client that goes at once may have to wait for the answer to its waiting hello; only tests that ask for such a hello get it. The driver
	// does not take this option from the URI.
	mode := "poll"
	if v, ok := uriOptions.Lookup("serverMonitoringMode").StringValueOK(); ok {
		mode = v
	}
	o := options.Client().SetServerMonitoringMode(mode).SetServerSelectionTimeout(selectionTimeout).ApplyURI(uri).
		SetMonitor(rec.commands()).SetPoolMonitor(rec.pool()).SetServerMonitor(rec.topology())
	if api := want(a, "serverApi", asDocument); api != nil {
		b := newArgs("serverApi", api)
		version := options.ServerAPIVersion(need(b, "version", asString))
		s := options.ServerAPI(version)
		set(b, "strict", asBool, s.SetStrict)
		set(b, "deprecationErrors", asBool, s.SetDeprecationErrors)
		if err := b.done(); err != nil {
			return nil, err
		}
		o.SetServerAPIOptions(s)
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	c, err := mongo.Connect(o)
	if err != nil {
		return nil, err
	}
	r.clients = append(r.clients, c)
	return &client{c, rec}, nil
}

// uri is the server's address with options.
func (s *Server) uri(opts bson.Raw) (string, error) {
	if opts == nil {
		return "mongodb://" + s.Address, nil
	}
	elements, err := opts.Elements()
	if err != nil {
		return "", err
	}
	query := url.Values{}
	for _, e := range elements {
		v, text := e.Value(), ""
		switch v.Type {
		case bson.TypeString:
			text = v.StringValue()
		case bson.TypeBoolean:
			text = fmt.Sprint(v.Boolean())
		default:
			n, ok := v.AsInt64OK()
			if !ok {
				return "", fmt.Errorf("unified: the URI option %s: %s", e.Key(), v)
			}
			text = fmt.Sprint(n)
		}
		if e.Key() == "loadBalanced" {
			return "", skip("needs a load balancer")
		}
		query.Set(e.Key(), text)
	}
	return "mongodb://" + s.Address + "/?" + query.Encode(), nil
}

func (r *run) createDatabase(a *args) (any, error) {
	c, err := find[*client](r, need(a, "client", asString))
	if err != nil {
		return nil, err
	}
	name := need(a, "databaseName", asString)
	o := options.Database()
	if doc := want(a, "databaseOptions", asDocument); doc != nil {
		b := newArgs("databaseOptions", doc)
		set(b, "readConcern", asReadConcern, o.SetReadConcern)
		set(b, "writeConcern", asWriteConcern, o.SetWriteConcern)
		set(b, "readPreference", asReadPreference, o.SetReadPreference)
		if err := b.done(); err != nil {
			return nil, err
		}
	}
	return c.Database(name, o), a.done()
}

func (r *run) createCollection(a *args) (any, error) {
	db, err := find[*mongo.Database](r, need(a, "database", asString))
	if err != nil {
		return nil, err
	}
	name := need(a, "collectionName", asString)
	o := options.Collection()
	if doc := want(a, "collectionOptions", asDocument); doc != nil {
		b := newArgs("collectionOptions", doc)
		set(b, "readConcern", asReadConcern, o.SetReadConcern)
		set(b, "writeConcern", asWriteConcern, o.SetWriteConcern)
		set(b, "readPreference", asReadPreference, o.SetReadPreference)
		if err := b.done(); err != nil {
			return nil, err
		}
	}
	return db.Collection(name, o), a.done()
}

func (r *run) createSession(a *args) (any, error) {
	c, err := find[*client](r, need(a, "client", asString))
	if err != nil {
		return nil, err
	}
	o := options.Session()
	if doc := want(a, "sessionOptions", asDocument); doc != nil {
		b := newArgs("sessionOptions", doc)
		set(b, "causalConsistency", asBool, o.SetCausalConsistency)
		set(b, "snapshot", asBool, o.SetSnapshot)
		if t := want(b, "defaultTransactionOptions", asDocument); t != nil {
			txn := newArgs("defaultTransactionOptions", t)
			o.SetDefaultTransactionOptions(transactionOptions(txn))
			if err := txn.done(); err != nil {
				return nil, err
			}
		}
		if err := b.done(); err != nil {
			return nil, err
		}
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	s, err := c.StartSession(o)
	if err != nil {
		return nil, err
	}
	r.sessions = append(r.sessions, s)
	return s, nil
}

func transactionOptions(a *args) *options.TransactionOptionsBuilder {
	o := options.Transaction()
	set(a, "readConcern", asReadConcern, o.SetReadConcern)
	set(a, "writeConcern", asWriteConcern, o.SetWriteConcern)
	set(a, "readPreference", asReadPreference, o.SetReadPreference)
	return o
}

func (r *run) createBucket(a *args) (any, error) {
	db, err := find[*mongo.Database](r, need(a, "database", asString))
	if err != nil {
		return nil, err
	}
	o := options.GridFSBucket()
	if doc := want(a, "bucketOptions", asDocument); doc != nil {
		b := newArgs("bucketOptions", doc)
		set(b, "bucketName", asString, o.SetName)
		set(b, "chunkSizeBytes", asInt32, o.SetChunkSizeBytes)
		set(b, "readConcern", asReadConcern, o.SetReadConcern)
		set(b, "writeConcern", asWriteConcern, o.SetWriteConcern)
		set(b, "readPreference", asReadPreference, o.SetReadPreference)
		if err := b.done(); err != nil {
			return nil, err
		}
	}
	return db.GridFSBucket(o), a.done()
}

// selectionTimeout is how long a client looks for a server: it is there, or something is wrong.
const selectionTimeout = 5 * time.Second

// save keeps an entity.
func (r *run) save(id string, v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, dup := r.entities[id]; dup {
		return fmt.Errorf("unified: two entities %s", id)
	}
	r.entities[id] = v
	return nil
}

// lookup gives an entity of any kind.
func (r *run) lookup(id string) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.entities[id]
	if !ok {
		return nil, fmt.Errorf("unified: no entity %s", id)
	}
	return v, nil
}

// find gives an entity of kind T.
func find[T any](r *run, id string) (t T, err error) {
	v, err := r.lookup(id)
	if err != nil {
		return t, err
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("unified: the entity %s is a %T", id, v)
	}
	return t, nil
}
