package command

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func TestHelloWaitsForAnotherTopology(t *testing.T) {
	cl := scripted(t)
	known := run(t, cl, d("hello", 1, "$db", "admin"))["topologyVersion"]
	if known == nil {
		t.Fatal("no topologyVersion")
	}
	other := d("processId", bson.NewObjectID(), "counter", int64(0))
	for _, x := range []struct {
		cmd  bson.D
		code mongoerr.Code
	}{
		{d("hello", 1, "topologyVersion", other, "maxAwaitTimeMS", 1_000_000_000, "$db", "admin"), 0},
		{d("hello", 1, "topologyVersion", known, "maxAwaitTimeMS", 0, "$db", "admin"), 0},
		{d("hello", 1, "topologyVersion", known, "maxAwaitTimeMS", 1, "$db", "admin"), 0},
		{d("hello", 1, "topologyVersion", known, "$db", "admin"), 31368},
		{d("hello", 1, "maxAwaitTimeMS", 1, "$db", "admin"), 31372},
	} {
		code, _ := run(t, cl, x.cmd)["code"].(int32)
		if code != int32(x.code) {
			t.Errorf("%v: %d", x.cmd, code)
		}
	}
	answered := make(chan bson.M)
	go func() {
		answered <- run(t, cl, d("hello", 1, "topologyVersion", known, "maxAwaitTimeMS", 1_000_000_000, "$db", "admin"))
	}()
	cl.d.Quiesce()
	if m := <-answered; m["ok"] != 1.0 {
		t.Error(m)
	}
}
