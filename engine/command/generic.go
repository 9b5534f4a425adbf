package command

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// generic are the arguments that every command may have. Each is either obeyed, or checked and without meaning on one
// machine ($readPreference, $clusterTime), or refused.
type generic struct {
	hasDB           bool
	maxTime         time.Duration
	session         session
	hasReadConcern  bool
	hasWriteConcern bool
	apiStrict       bool
}

// session is a logical session's id. All that hangs on one are its cursors.
type session struct {
	id  [16]byte
	set bool
}

func isGeneric(name []byte) bool {
	switch string(name) {
	case "$db", "lsid", "$clusterTime", "$readPreference", "readConcern", "writeConcern", "maxTimeMS", "comment", "txnNumber", "autocommit",
		"startTransaction", "apiVersion", "apiStrict", "apiDeprecationErrors", "$client":
		return true
	}
	return false
}

func (g *generic) parse(c *call) error {
	var seen seen
	it := value.Elements(c.req.Body)
	it.Next()
	var apiVersion, apiOther, transaction bool
	for it.Next() {
		if !isGeneric(it.Name()) {
			continue
		}
		f := field{parent: c.command.name, name: c.client.name(it.Name()), v: it.Value()}
		err := seen.visit(f, func(f field) (bool, error) {
			switch f.name {
			case "$db":
				if g.hasDB = f.v.Type == bson.TypeString; g.hasDB {
					c.database = c.client.name(value.StringBytes(f.v))
					return true, nil
				}
				return true, f.string(&c.database)
			case "lsid":
				return true, g.session.parse(f)
			case "maxTimeMS":
				return true, g.parseMaxTime(f)
			case "readConcern":
				return true, g.parseReadConcern(f)
			case "writeConcern":
				return true, g.parseWriteConcern(f)
			case "$readPreference":
				return true, parseReadPreference(f)
			case "$clusterTime", "$client":
				return true, f.ignored(bson.TypeEmbeddedDocument)
			case "txnNumber", "autocommit", "startTransaction":
				transaction = transaction || !f.null()
			case "apiVersion":
				apiVersion = true
				return true, parseAPIVersion(f)
			case "apiStrict":
				apiOther = true
				return true, f.bool(&g.apiStrict)
			case "apiDeprecationErrors":
				// Nothing in version 1 is deprecated.
				apiOther = true
				return true, f.ignored(bson.TypeBoolean)
			}
			return true, nil // comment: any value
		})
		if err != nil {
			return err
		}
	}
	switch {
	case apiOther && !apiVersion:
		return mongoerr.APIVersionError.Errorf("Provided apiStrict or apiDeprecationErrors without passing apiVersion")
	case transaction:
		return mongoerr.IllegalOperation.Errorf("Transaction numbers are only allowed on a replica set member or mongos")
	}
	return nil
}

// plainSession is what stands before the bytes of the id in {id: UUID(…)}, as all drivers send it.
const plainSession = "\x1e\x00\x00\x00\x05id\x00\x10\x00\x00\x00\x04"

func (s *session) parse(f field) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	if len(doc) == len(plainSession)+17 && string(doc[:len(plainSession)]) == plainSession {
		s.set = true
		copy(s.id[:], doc[len(plainSession):])
		return nil
	}
	err := fieldsOf(f.parent+"."+f.name, doc, func(f field) (bool, error) {
		switch f.name {
		case "id":
			subtype, data, ok := f.v.BinaryOK()
			if !ok || subtype != bson.TypeBinaryUUID || len(data) != 16 {
				return true, f.wrongType("uuid")
			}
			s.set = true
			copy(s.id[:], data)
		case "uid", "txnNumber", "txnUUID", "stxnid":
		default:
			return false, nil
		}
		return true, nil
	})
	if err == nil && !s.set {
		return missing(f.parent+"."+f.name, "id")
	}
	return err
}

func (g *generic) parseMaxTime(f field) error {
	if f.null() {
		return nil
	}
	if !value.IsNumber(f.v.Type) {
		return mongoerr.BadValue.Errorf("maxTimeMS must be a number")
	}
	n := whole(f.v)
	if n < 0 || n > math.MaxInt32 {
		return mongoerr.BadValue.Errorf("%d value for maxTimeMS is out of range [0, %d]", n, math.MaxInt32)
	}
	g.maxTime = time.Duration(n) * time.Millisecond
	return nil
}

// Every read sees durable state of one instant, which is what local, available and majority ask for at most. The others a
// server without a replica set refuses.
func (g *generic) parseReadConcern(f field) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	return fieldsOf(f.name, doc, func(f field) (bool, error) {
		switch f.name {
		case "level":
			var level string
			if err := f.string(&level); err != nil {
				return true, err
			}
			switch level {
			case "local", "available", "majority":
				g.hasReadConcern = true
			case "snapshot", "linearizable":
				return true, mongoerr.NotAReplicaSet.Errorf("node needs to be a replica set member to use readConcern level %s", level)
			default:
				return true, mongoerr.BadValue.Errorf("Enumeration value '%s' for field 'level' is not a valid value.", level)
			}
		case "afterClusterTime", "atClusterTime", "afterOpTime":
			return true, mongoerr.IllegalOperation.Errorf("Cannot specify %s readConcern without replication enabled", f.name)
		case "provenance":
		default:
			return false, nil
		}
		return true, nil
	})
}

// Every write is answered when it is durable, so all that a single server can be asked for is given: w 0 concerns only whether the
// client reads the answer, and wtimeout how long it would wait for others.
func (g *generic) parseWriteConcern(f field) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	g.hasWriteConcern = value.Count(doc) > 0
	var journal, sync bool
	err := fieldsOf(f.name, doc, func(f field) (bool, error) {
		switch f.name {
		case "w":
			return true, checkW(f)
		case "j":
			return true, f.bool(&journal)
		case "fsync":
			return true, f.bool(&sync)
		case "wtimeout":
			if !value.IsNumber(f.v.Type) && !f.null() {
				return true, f.wrongType("long")
			}
		case "provenance", "getLastError", "wElectionId", "wOpTime":
		default:
			return false, nil
		}
		return true, nil
	})
	if err == nil && journal && sync {
		return mongoerr.FailedToParse.Errorf("fsync and j options cannot be used together")
	}
	return err
}

func checkW(f field) error {
	switch {
	case f.null():
		return nil
	case value.IsNumber(f.v.Type):
		n := whole(f.v)
		if n < 0 || n > 50 {
			return mongoerr.FailedToParse.Errorf("w has to be a non-negative number and not greater than 50")
		}
		if n > 1 {
			return mongoerr.BadValue.Errorf("cannot use 'w' > 1 when a host is not replicated")
		}
		return nil
	case f.v.Type == bson.TypeString:
		if mode := f.v.StringValue(); mode != "majority" {
			return mongoerr.BadValue.Errorf("cannot use non-majority 'w' mode %s when a host is not a member of a replica set", mode)
		}
		return nil
	case f.v.Type == bson.TypeEmbeddedDocument:
		return mongoerr.BadValue.Errorf("cannot use tags in 'w' when a host is not a member of a replica set")
	}
	return mongoerr.FailedToParse.Errorf("w has to be a number, string, or object; found: %s", typeName(f.v.Type))
}

func parseReadPreference(f field) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	mode := value.Lookup(doc, "mode")
	if mode.Type != bson.TypeString {
		return mongoerr.FailedToParse.Errorf("$readPreference needs a mode, which is a string")
	}
	switch mode.StringValue() {
	case "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest":
		return nil
	}
	return mongoerr.FailedToParse.Errorf("Could not parse $readPreference mode '%s'", mode.StringValue())
}

func parseAPIVersion(f field) error {
	var version string
	if err := f.string(&version); err != nil {
		return err
	}
	if version != "1" {
		return mongoerr.APIVersionError.Errorf("API version must be \"1\"")
	}
	return nil
}
