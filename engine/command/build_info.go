package command

import (
	"runtime"
	"runtime/debug"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

// buildInfo tells what we are. version is that of the MongoDB whose behaviour clients may count on; our own is in the section of
// our name.
func buildInfo(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	b := BuildInfo()
	c.out = bsoncore.AppendStringElement(c.out, "version", version)
	c.out = bsoncore.AppendStringElement(c.out, "gitVersion", b.Revision)
	c.out = appendStrings(c.out, "modules", nil)
	c.out = bsoncore.AppendStringElement(c.out, "allocator", "go")
	c.out = bsoncore.AppendStringElement(c.out, "javascriptEngine", "none")
	c.out = bsoncore.AppendStringElement(c.out, "sysInfo", "deprecated")
	at, out := bsoncore.AppendArrayElementStart(c.out, "versionArray")
	for i, n := range []int32{8, 0, 0, 0} {
		out = appendValue(out, indexName(i), value.Int32(n))
	}
	c.out, _ = bsoncore.AppendArrayEnd(out, at)
	c.out = bsoncore.AppendInt32Element(c.out, "bits", 32<<(^uint(0)>>63))
	c.out = bsoncore.AppendBooleanElement(c.out, "debug", false)
	c.out = bsoncore.AppendInt32Element(c.out, "maxBsonObjectSize", documentSizeMax)
	c.out = appendStrings(c.out, "storageEngines", []string{"multiforadb"})
	c.out = nested(c.out, "multiforadb", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "version", b.Version)
		dst = bsoncore.AppendStringElement(dst, "go", runtime.Version())
		return bsoncore.AppendStringElement(dst, "platform", runtime.GOOS+"/"+runtime.GOARCH)
	})
	return nil
}

// Build is what is known of this binary.
type Build struct{ Version, Revision string }

// BuildInfo reads it from the binary.
func BuildInfo() Build {
	b := Build{Version: "(devel)", Revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
