package command

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

// A logical session is a number that a client makes up. Without transactions only cursors hang on it, so nothing is kept of
// one: to end a session is to kill its cursors.

// startSession makes the number for the client.
func startSession(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	var id [16]byte
	for i := range id {
		id[i] = byte(c.env.Rand.Uint64())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // a random UUID
	c.out = nested(c.out, "id", func(dst []byte) []byte {
		return bsoncore.AppendBinaryElement(dst, "id", bson.TypeBinaryUUID, id[:])
	})
	c.out = bsoncore.AppendInt32Element(c.out, "timeoutMinutes", sessionTimeoutMinutes)
	return nil
}

// localSessions are the sessions that there is anything of: those with a cursor, and the one that asks.
func (c *call) localSessions() []bson.Raw {
	ids := make(map[session]bool)
	if c.generic.session.set {
		ids[c.generic.session] = true
	}
	c.cursors.mu.Lock()
	for _, cur := range c.cursors.open { // order: sorted below
		if cur.session.set {
			ids[cur.session] = true
		}
	}
	c.cursors.mu.Unlock()
	nobody := sha256.Sum256(nil) // the digest that stands for the user; there are none
	now := c.env.Clock.Now().UnixMilli()
	docs := make([]bson.Raw, 0, len(ids))
	for _, s := range slices.SortedFunc(maps.Keys(ids), func(a, b session) int { return bytes.Compare(a.id[:], b.id[:]) }) {
		docs = append(docs, document(func(dst []byte) []byte {
			dst = nested(dst, "_id", func(dst []byte) []byte {
				dst = bsoncore.AppendBinaryElement(dst, "id", bson.TypeBinaryUUID, s.id[:])
				return bsoncore.AppendBinaryElement(dst, "uid", bson.TypeBinaryGeneric, nobody[:])
			})
			return bsoncore.AppendDateTimeElement(dst, "lastUse", now)
		}))
	}
	return docs
}

// endSessions ends sessions.
func endSessions(c *call) error { return c.killSessionCursors() }

// killSessions ends sessions.
func killSessions(c *call) error { return c.killSessionCursors() }

// refreshSessions keeps sessions from expiring, which they do not.
func refreshSessions(c *call) error {
	_, err := c.sessionIDs()
	return err
}

// killAllSessions ends all sessions. There are no users whose it could be asked to end alone.
func killAllSessions(c *call) error {
	v := c.first()
	f := field{parent: c.command.name, name: c.command.name, v: v}
	if v.Type != bson.TypeArray {
		return f.wrongType("array")
	}
	if err := f.unsupported(); err != nil {
		return err
	}
	if err := c.noFields(); err != nil {
		return err
	}
	c.cursors.kill(func(cur *cursor) bool { return cur.session.set })
	return nil
}

func (c *call) killSessionCursors() error {
	ids, err := c.sessionIDs()
	if err != nil {
		return err
	}
	c.cursors.kill(func(cur *cursor) bool { return ids[cur.session] })
	return nil
}

// sessionIDs reads the array of sessions that is the command's first field.
func (c *call) sessionIDs() (map[session]bool, error) {
	v := c.first()
	name := c.command.name
	if v.Type != bson.TypeArray {
		return nil, field{parent: name, name: name, v: v}.wrongType("array")
	}
	ids := make(map[session]bool)
	for it := value.Elements(v.Value); it.Next(); {
		var s session
		e := field{parent: name + "." + name, name: string(it.Name()), v: it.Value()}
		if err := s.parse(e); err != nil {
			return nil, err
		}
		if s.set {
			ids[s] = true
		}
	}
	return ids, c.noFields()
}
