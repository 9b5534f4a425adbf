package unified

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// schemaMax is the newest version of the format whose words this runner knows.
const schemaMax = "1.23"

// skip is the reason why a test is not run.
type skip string

func (s skip) Error() string { return string(s) }

// requirement is what a test needs of the server; one of several suffices.
type requirement struct {
	Min        string   `bson:"minServerVersion"`
	Max        string   `bson:"maxServerVersion"`
	Topologies []string `bson:"topologies"`
	Serverless string   `bson:"serverless"`
	Parameters bson.Raw `bson:"serverParameters"`
	Auth       *bool    `bson:"auth"`
	Mechanism  string   `bson:"authMechanism"`
	// Encryption is a bool, or a document in newer files.
	Encryption bson.RawValue `bson:"csfle"`
}

// unmet says what the server lacks, or "".
func (q requirement) unmet(s *Server) string {
	encryption, isBool := q.Encryption.BooleanOK()
	switch {
	case q.Topologies != nil && !slices.Contains(q.Topologies, "single"):
		return "topology " + strings.Join(slices.Sorted(slices.Values(q.Topologies)), ", ")
	case q.Min != "" && compareVersions(s.Version, q.Min) < 0:
		return "server version >= " + q.Min
	case q.Max != "" && compareVersions(s.Version, q.Max) > 0:
		return "server version <= " + q.Max
	case q.Serverless == "require":
		return "serverless"
	case q.Auth != nil && *q.Auth, q.Mechanism != "":
		return "authentication"
	case isBool && encryption, !isBool && !q.Encryption.IsZero():
		return "client-side encryption"
	}
	elements, _ := q.Parameters.Elements()
	for _, e := range elements {
		got, err := s.Parameters.LookupErr(e.Key())
		if err != nil || (&matcher{}).match(e.Key(), e.Value(), got, false) != nil {
			return "server parameter " + e.Key()
		}
	}
	return ""
}

// admit is nil if one of the requirements is met, else a skip that names them.
func (s *Server) admit(qs []requirement) error {
	var reasons []string
	for _, q := range qs {
		reason := q.unmet(s)
		if reason == "" {
			return nil
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if reasons == nil {
		return nil
	}
	return skip("needs " + strings.Join(reasons, " or "))
}

// admitSchema refuses what is newer than this runner.
func admitSchema(version string) error {
	if compareVersions(version, "1.0") < 0 || compareVersions(version, schemaMax) > 0 {
		return fmt.Errorf("unified: schema version %s", version)
	}
	return nil
}

// compareVersions compares as many parts as both have.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}
