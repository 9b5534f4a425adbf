package command

import "github.com/multiforadb/multiforadb/engine/mongoerr"

// replSetGetStatus answers tools that ask whether this is a replica set.
func replSetGetStatus(*call) error {
	return mongoerr.NoReplicationEnabled.Errorf("not running with --replSet")
}
