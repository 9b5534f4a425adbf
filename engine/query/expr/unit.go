package expr

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Unit is a unit of time, for stages that count in it: $densify and $setWindowFields.
type Unit struct{ u unit }

// ParseUnit reads a unit's name.
func ParseUnit(op string, v bson.RawValue) (Unit, error) {
	u, err := readUnit(op, v)
	return Unit{u}, err
}

// Add is n units behind a moment, in milliseconds since 1970 and UTC; false if that is no date.
func (u Unit) Add(ms, n int64) (int64, bool) { return addUnits(ms, u.u, n, time.UTC) }

// Millis is the length of the unit, and 0 if that is not always the same.
func (u Unit) Millis() int64 { return unitMillis[u.u] }
