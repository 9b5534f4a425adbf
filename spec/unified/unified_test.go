package unified

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// values reads {"want": …, "got": …}.
func values(t *testing.T, text string) (want, got bson.RawValue) {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	got, _ = doc.LookupErr("got")
	return doc.Lookup("want"), got
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		text string
		says string // part of the complaint; "" if it matches
	}{
		{`{"want": 1, "got": {"$numberLong": "1"}}`, ""},
		{`{"want": 1, "got": 1.0}`, ""},
		{`{"want": 1, "got": 1.5}`, "root: "},
		{`{"want": 1, "got": "1"}`, "root: "},
		{`{"want": {"a": 1}, "got": {"a": 1, "b": 2}}`, ""},
		{`{"want": {"a": {"b": 1}}, "got": {"a": {"b": 1, "c": 2}}}`, "root.a.c: not wanted"},
		{`{"want": {"a": 1}, "got": {}}`, "root.a: missing"},
		{`{"want": [{"a": 1}], "got": [{"a": 1, "b": 2}]}`, ""},
		{`{"want": {"x": [{"a": 1}]}, "got": {"x": [{"a": 1, "b": 2}]}}`, "root.x.0.b: not wanted"},
		{`{"want": [1], "got": [1, 2]}`, "2 elements"},
		{`{"want": {"a": {"$$exists": false}}, "got": {}}`, ""},
		{`{"want": {"a": {"$$exists": false}}, "got": {"a": null}}`, "$$exists"},
		{`{"want": {"a": {"$$exists": true}}, "got": {}}`, "$$exists"},
		{`{"want": {"a": {"$$unsetOrMatches": 1}}, "got": {}}`, ""},
		{`{"want": {"a": {"$$unsetOrMatches": 1}}, "got": {"a": 2}}`, "root.a: "},
		{`{"want": {"$$unsetOrMatches": {"a": 1}}, "got": {"a": 1, "b": 1}}`, ""},
		{`{"want": {"$$type": "string"}, "got": "s"}`, ""},
		{`{"want": {"$$type": ["int", "long"]}, "got": "s"}`, "want"},
		{`{"want": {"a": {"$$type": "int"}}, "got": {}}`, "missing"},
		{`{"want": {"$$lte": 5}, "got": 5}`, ""},
		{`{"want": {"$$lte": 5}, "got": 6}`, "<= "},
		{`{"want": {"$$matchesHexBytes": "cafe"}, "got": {"$binary": {"base64": "yv4=", "subType": "00"}}}`, ""},
		{`{"want": {"a": {"$$matchAsRoot": {"b": 1}}}, "got": {"a": {"b": 1, "c": 1}}}`, ""},
		{`{"want": {"$$matchAsDocument": {"a": 1}}, "got": "{\"a\": 1}"}`, ""},
		{`{"want": {"$$nonsense": 1}, "got": 1}`, "does not know"},
	} {
		want, got := values(t, c.text)
		err := new(matcher).match("root", want, got, true)
		switch {
		case err == nil && c.says != "":
			t.Errorf("%s matches, want %q", c.text, c.says)
		case err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
}

func TestRequirementsAreMetByOneOfThem(t *testing.T) {
	s := &Server{Version: "8.0.0"}
	for _, c := range []struct{ text, skip string }{
		{`{}`, ""},
		{`{"runOnRequirements": [{"minServerVersion": "8.0", "maxServerVersion": "8.0.99"}]}`, ""},
		{`{"runOnRequirements": [{"topologies": ["sharded", "replicaset"]}]}`, "needs topology replicaset, sharded"},
		{`{"runOnRequirements": [{"topologies": ["replicaset"]}, {"topologies": ["single"]}]}`, ""},
		{`{"runOnRequirements": [{"minServerVersion": "8.1"}, {"auth": true}]}`, "needs server version >= 8.1 or authentication"},
		{`{"runOnRequirements": [{"serverParameters": {"x": 1}}]}`, "needs server parameter x"},
		{`{"runOnRequirements": [{"serverless": "forbid"}]}`, ""},
	} {
		f, err := parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		err = s.admit(f.RunOn)
		var reason skip
		if err != nil && !errors.As(err, &reason) || string(reason) != c.skip {
			t.Errorf("%s: %v, want %q", c.text, err, c.skip)
		}
	}
}

func TestParseKnowsTheFormats(t *testing.T) {
	f, err := Parse([]byte(`{"data": [{"_id": 1}], "tests": [{"description": "d",
		"operation": {"name": "bulkWrite", "arguments": {"requests": [{"name": "deleteOne", "arguments": {"filter": {}}}], "options": {"ordered": true}}},
		"outcome": {"result": {"deletedCount": 1}, "collection": {"data": []}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := f.Tests[0].Operations[0].Arguments.String()
	if want := `{"requests": [{"deleteOne": {"filter": {}}}],"ordered": true}`; got != want {
		t.Errorf("the arguments are %s, want %s", got, want)
	}
	for _, text := range []string{`[]`, `{"tests": []}`, `{"tests": [{"operations": []}], "data": []}`} {
		if _, err := Parse([]byte(text)); !errors.As(err, new(LegacyError)) {
			t.Errorf("%s: %v, want a LegacyError", text, err)
		}
	}
}

func TestCardTextIsReadAsItWasWritten(t *testing.T) {
	c := make(Card)
	c.Add("crud/find.json: a", Outcome{Verdict: Pass})
	c.Add("crud/find.json: a", Outcome{Fail, "reasons of failures are not kept"})
	c.Add("gridfs/x.json: b | c", Outcome{Skip, "needs a topology"})
	text := c.Text()
	back, err := ParseCard(text)
	if err != nil {
		t.Fatal(err)
	}
	if string(back.Text()) != string(text) || len(back) != 3 || back["gridfs/x.json: b | c"] != (Outcome{Skip, "needs a topology"}) {
		t.Errorf("%s\nis read as\n%s", text, back.Text())
	}
	now := Card{"crud/find.json: a": {Verdict: Fail}}
	if lost := now.Lost(back, []string{"crud"}); len(lost) != 1 || lost[0] != "crud/find.json: a" {
		t.Errorf("lost: %v", lost)
	}
	if lost := now.Lost(back, nil); lost != nil {
		t.Errorf("lost in no folder: %v", lost)
	}
	for _, bad := range []string{"good a.json: x", "skip a.json: without a reason", "pass"} {
		if _, err := ParseCard([]byte(bad)); err == nil {
			t.Errorf("%q is read without an error", bad)
		}
	}
}
