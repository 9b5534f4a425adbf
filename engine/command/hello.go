package command

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	// version is the MongoDB whose language we speak, and wireVersionMax what it says in hello.
	version        = "8.0.0"
	wireVersionMax = 25

	documentSizeMax = 16 << 20
	messageSizeMax  = 48_000_000
	writeBatchMax   = 100_000

	sessionTimeoutMinutes = 30
	metadataMax           = 512

	// helloWaitMax is how long a client is kept waiting for another topology. Clients ask again at once; but some that are closed
	// at the wrong moment do not go before they are answered, for the 10 s that they have asked for.
	helloWaitMax = time.Second / 2
)

// hello introduces a client and the server to each other. It serves isMaster too, which has another name for the primary.
// A client that knows the topology's version may wait in it for another one, which a single server never has: it is answered when its time
// is over, or helloWaitMax.
func hello(c *call) error {
	var compression []string
	helloOK := false
	var known bson.Raw
	await := int64(-1)
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "helloOk":
			return true, f.bool(&helloOK)
		case "client":
			return true, c.client.introduce(c, f)
		case "compression":
			return true, negotiate(f, &compression)
		case "hostInfo", "saslSupportedMechs":
			return true, f.ignored(bson.TypeString)
		case "loadBalanced":
			return true, f.unsupported()
		case "speculativeAuthenticate":
			return true, f.ignored(bson.TypeEmbeddedDocument)
		case "topologyVersion":
			return true, f.document(&known)
		case "maxAwaitTimeMS":
			return true, f.natural(&await)
		}
		// A client newer than we says here what else it could do; not to be answered is its answer.
		return true, nil
	})
	switch {
	case err != nil:
		return err
	case known != nil && await < 0:
		return mongoerr.Code(31368).Errorf("A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case known == nil && await >= 0:
		return mongoerr.Code(31372).Errorf("A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case known != nil && value.CompareDocuments(known, c.topologyVersion()) == 0:
		start := c.env.Clock.Monotonic()
		c.quiet.wait(c.ctx, min(time.Duration(await)*time.Millisecond, helloWaitMax))
		c.waited = c.env.Clock.Monotonic() - start
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	if c.command.name == "hello" {
		c.out = bsoncore.AppendBooleanElement(c.out, "isWritablePrimary", true)
	} else {
		c.out = bsoncore.AppendBooleanElement(c.out, "ismaster", true)
	}
	if helloOK || c.command.name == "hello" {
		c.out = bsoncore.AppendBooleanElement(c.out, "helloOk", true)
	}
	c.out = bsoncore.AppendDocumentElement(c.out, "topologyVersion", c.topologyVersion())
	c.out = bsoncore.AppendInt32Element(c.out, "maxBsonObjectSize", documentSizeMax)
	c.out = bsoncore.AppendInt32Element(c.out, "maxMessageSizeBytes", messageSizeMax)
	c.out = bsoncore.AppendInt32Element(c.out, "maxWriteBatchSize", writeBatchMax)
	c.out = bsoncore.AppendDateTimeElement(c.out, "localTime", c.env.Clock.Now().UnixMilli())
	c.out = bsoncore.AppendInt32Element(c.out, "logicalSessionTimeoutMinutes", sessionTimeoutMinutes)
	c.out = bsoncore.AppendInt32Element(c.out, "connectionId", c.client.ID)
	c.out = bsoncore.AppendInt32Element(c.out, "minWireVersion", 0)
	c.out = bsoncore.AppendInt32Element(c.out, "maxWireVersion", wireVersionMax)
	c.out = bsoncore.AppendBooleanElement(c.out, "readOnly", false)
	if len(compression) > 0 {
		c.out = appendStrings(c.out, "compression", compression)
	}
	return nil
}

// topologyVersion says which run of the server this is; what it is to the topology never changes.
func (d *Dispatcher) topologyVersion() bson.Raw {
	return document(func(dst []byte) []byte {
		dst = bsoncore.AppendObjectIDElement(dst, "processId", d.processID)
		return bsoncore.AppendInt64Element(dst, "counter", 0)
	})
}

// introduce keeps the first hello's description of the client.
func (cl *Client) introduce(c *call, f field) error {
	var doc bson.Raw
	if err := f.document(&doc); err != nil || doc == nil {
		return err
	}
	if cl.metadata != nil {
		return mongoerr.ClientMetadataCannotBeMutated.Errorf("The client metadata document may only be sent in the first hello")
	}
	if len(doc) > metadataMax {
		return mongoerr.Code(187).Errorf("The client metadata document must be less then or equal to %d bytes", metadataMax)
	}
	cl.metadata = append(bson.Raw(nil), doc...)
	c.log.Debug("client", "conn", cl.ID, "remote", cl.Remote, "metadata", cl.metadata.String())
	return nil
}

// negotiate keeps the compressors that the client and we have, in the client's order.
func negotiate(f field, names *[]string) error {
	if f.null() {
		return nil
	}
	if f.v.Type != bson.TypeArray {
		return f.wrongType("array")
	}
	for it := value.Elements(f.v.Value); it.Next(); {
		switch name := string(value.StringBytes(it.Value())); name {
		case "snappy", "zlib", "zstd":
			if len(*names) < 3 {
				*names = append(*names, name)
			}
		}
	}
	return nil
}
