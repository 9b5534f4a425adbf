package unified

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// matchError compares an operation's error with expectError.
func (m *matcher) matchError(expect bson.Raw, err error, result bson.RawValue) error {
	a := newArgs("expectError", expect)
	a.get("isError")
	var server mongo.ServerError
	fromServer := errors.As(err, &server) && !mongo.IsNetworkError(err)
	if a.has("isClientError") {
		if want := want(a, "isClientError", asBool); want == fromServer {
			return fmt.Errorf("want isClientError %t, got %w", want, err)
		}
	}
	if a.has("isTimeoutError") {
		if want := want(a, "isTimeoutError", asBool); want != mongo.IsTimeout(err) {
			return fmt.Errorf("want isTimeoutError %t, got %w", want, err)
		}
	}
	if s := want(a, "errorContains", asString); !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(s)) {
		return fmt.Errorf("want an error that contains %q, got %w", s, err)
	}
	if a.has("errorCode") {
		if code := want(a, "errorCode", asInt64); server == nil || !server.HasErrorCode(int(code)) {
			return fmt.Errorf("want error code %d, got %w", code, err)
		}
	}
	if name := want(a, "errorCodeName", asString); name != "" && !slices.Contains(codeNames(err), name) {
		return fmt.Errorf("want error %s, got %w", name, err)
	}
	var labeled mongo.LabeledError
	errors.As(err, &labeled)
	for _, label := range want(a, "errorLabelsContain", asList) {
		if s, _ := label.(string); labeled == nil || !labeled.HasErrorLabel(s) {
			return fmt.Errorf("want an error with label %s, got %w", s, err)
		}
	}
	for _, label := range want(a, "errorLabelsOmit", asList) {
		if s, _ := label.(string); labeled != nil && labeled.HasErrorLabel(s) {
			return fmt.Errorf("want an error without label %s, got %w", s, err)
		}
	}
	if v := a.get("expectResult"); v.Type != 0 {
		if e := m.match("result beside the error", v, result, true); e != nil {
			return e
		}
	}
	if v := a.get("errorResponse"); v.Type != 0 {
		var got bson.RawValue
		if raw := response(err); raw != nil {
			got = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
		}
		if e := m.match("response", v, got, true); e != nil {
			return e
		}
	}
	if err := m.matchBulkErrors(a, err); err != nil {
		return err
	}
	return a.done()
}

// matchBulkErrors compares what failed of a client's bulk write, by the operations' numbers.
func (m *matcher) matchBulkErrors(a *args, err error) error {
	var bulk mongo.ClientBulkWriteException
	errors.As(err, &bulk)
	if v := a.get("writeErrors"); v.Type != 0 {
		got := bson.D{}
		for _, i := range sortedKeys(bulk.WriteErrors) {
			e := bulk.WriteErrors[i]
			got = append(got, bson.E{Key: fmt.Sprint(i), Value: bson.D{{Key: "code", Value: e.Code}, {Key: "message", Value: e.Message}}})
		}
		if e := m.match("writeErrors", v, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document(got)}, false); e != nil {
			return e
		}
	}
	if v := a.get("writeConcernErrors"); v.Type != 0 {
		got := bson.A{}
		for _, e := range bulk.WriteConcernErrors {
			got = append(got, bson.D{{Key: "code", Value: e.Code}, {Key: "message", Value: e.Message}})
		}
		value := document(bson.D{{Key: "v", Value: got}}).Lookup("v")
		return m.match("writeConcernErrors", v, value, false)
	}
	return nil
}

// codeNames are the names of a server's error.
func codeNames(err error) (names []string) {
	var command mongo.CommandError
	var write mongo.WriteException
	var bulk mongo.BulkWriteException
	switch {
	case errors.As(err, &command):
		names = append(names, command.Name)
	case errors.As(err, &write):
		if write.WriteConcernError != nil {
			names = append(names, write.WriteConcernError.Name)
		}
	case errors.As(err, &bulk):
		if bulk.WriteConcernError != nil {
			names = append(names, bulk.WriteConcernError.Name)
		}
	}
	return names
}

// response is the server's whole reply that was an error.
func response(err error) bson.Raw {
	var command mongo.CommandError
	var write mongo.WriteException
	var bulk mongo.BulkWriteException
	switch {
	case errors.As(err, &command):
		return command.Raw
	case errors.As(err, &write):
		return write.Raw
	case errors.As(err, &bulk) && len(bulk.WriteErrors) > 0:
		return bulk.WriteErrors[0].Raw
	}
	return nil
}
