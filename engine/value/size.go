package value

import "go.mongodb.org/mongo-driver/v2/bson"

// Size is the length of the value of type t that b begins with, or -1 if b is too short for it or contradicts itself. It is for
// those who walk documents in a way of their own.
func Size(t bson.Type, b []byte) int {
	n := valueSize(t, b)
	if n < 0 || n > len(b) {
		return -1
	}
	return n
}
