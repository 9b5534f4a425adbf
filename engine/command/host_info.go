package command

import (
	"runtime"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// hostInfo tells about the machine.
func hostInfo(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	c.out = nested(c.out, "system", func(dst []byte) []byte {
		dst = bsoncore.AppendDateTimeElement(dst, "currentTime", c.env.Clock.Now().UnixMilli())
		dst = bsoncore.AppendStringElement(dst, "hostname", c.opts.Process.Host)
		dst = bsoncore.AppendInt32Element(dst, "cpuAddrSize", 32<<(^uint(0)>>63))
		dst = bsoncore.AppendInt32Element(dst, "numCores", int32(runtime.NumCPU()))
		return bsoncore.AppendStringElement(dst, "cpuArch", runtime.GOARCH)
	})
	c.out = nested(c.out, "os", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "type", runtime.GOOS)
		return bsoncore.AppendStringElement(dst, "name", runtime.GOOS)
	})
	c.out = nested(c.out, "extra", func(dst []byte) []byte { return dst })
	return nil
}

// features tells what an old client wants to know of the script language: there is none.
func features(c *call) error {
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "oidReset":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	c.out = bsoncore.AppendBooleanElement(c.out, "js", false)
	return nil
}

// getCmdLineOpts gives the command line.
func getCmdLineOpts(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	c.out = appendStrings(c.out, "argv", c.opts.Process.Argv)
	c.out = nested(c.out, "parsed", func(dst []byte) []byte { return dst })
	return nil
}
