package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

type bypass struct{}

// BypassValidation gives a context with which writes do not ask a collection's validator: bypassDocumentValidation.
func BypassValidation(ctx context.Context) context.Context {
	return context.WithValue(ctx, bypass{}, true)
}

func bypassesValidation(ctx context.Context) bool { return ctx.Value(bypass{}) != nil }

// validate asks the collection's validator about a document; before is what it replaces, or nil.
func (u *unit) validate(before, after bson.Raw) error {
	if u.valid == nil || u.unchecked {
		return nil
	}
	ok, err := u.valid.Match(after)
	if ok || err != nil {
		return err
	}
	if before != nil && u.def.Options.Moderate {
		if was, err := u.valid.Match(before); !was || err != nil {
			return err
		}
	}
	if u.def.Options.Lenient {
		u.log.Warn("a document fails validation", "collection", u.def.NS.String(), "_id", value.Brief(value.Lookup(after, "_id"), 200))
		return nil
	}
	details, err := u.valid.Explain(after)
	if err != nil {
		return err
	}
	return mongoerr.DocumentValidationFailure.New("Document failed validation").
		With("errInfo", bson.D{{Key: "failingDocumentId", Value: value.Lookup(after, "_id")}, {Key: "details", Value: details}})
}
