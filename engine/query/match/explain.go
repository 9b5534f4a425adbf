package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Explain says why doc does not pass the filter, in the form of MongoDB's errInfo.details for a document that failed validation.
// It is for that one document, and in no hurry.
func (f *Filter) Explain(doc bson.Raw) (bson.D, error) {
	x := explainer{doc: doc}
	d := x.failed(f.root)
	return d, x.err
}

// explainer explains one document.
type explainer struct {
	doc bson.Raw
	err error
}

// passes evaluates a part of the tree. Its paths have slots of a filter that is not at hand, so they are looked up one by one.
func (x *explainer) passes(n Node) bool {
	e := eval{doc: x.doc, index: -1, single: true}
	ok := e.match(n)
	if e.err != nil {
		x.err = e.err
	}
	return ok
}

// failed explains a node that does not match.
func (x *explainer) failed(n Node) bson.D {
	switch n := n.(type) {
	case *And:
		return bson.D{{Key: "operatorName", Value: "$and"}, {Key: "clausesNotSatisfied", Value: x.clauses(n.Nodes, false)}}
	case *Or:
		return bson.D{{Key: "operatorName", Value: "$or"}, {Key: "clausesNotSatisfied", Value: x.clauses(n.Nodes, false)}}
	case *Nor:
		return bson.D{{Key: "operatorName", Value: "$nor"}, {Key: "clausesSatisfied", Value: x.clauses(n.Nodes, true)}}
	case *Not:
		switch n.Node.(type) {
		case *Comparison, *In, *Exists:
			return x.leaf(n, n.Node, true)
		}
		return bson.D{{Key: "operatorName", Value: "$not"}, {Key: "details", Value: x.passed(n.Node)}}
	case *Schema:
		j := explainedSchema{}
		rules := j.rules(n.schema.raw, value.Document(x.doc))
		if j.err != nil {
			x.err = j.err
		}
		return bson.D{{Key: "operatorName", Value: "$jsonSchema"}, {Key: "schemaRulesNotSatisfied", Value: rules}}
	case *Expr:
		return bson.D{{Key: "operatorName", Value: "$expr"}, {Key: "specifiedAs", Value: specified(n)}, {Key: "reason", Value: "expression did not match"}}
	case *Always:
		return bson.D{{Key: "operatorName", Value: "$alwaysFalse"}, {Key: "specifiedAs", Value: specified(n)},
			{Key: "reason", Value: "expression always evaluates to false"}}
	}
	return x.leaf(n, n, false)
}

// passed explains a node that matches and should not.
func (x *explainer) passed(n Node) bson.D {
	switch n := n.(type) {
	case *And:
		return bson.D{{Key: "operatorName", Value: "$and"}, {Key: "clausesSatisfied", Value: x.clauses(n.Nodes, true)}}
	case *Or:
		return bson.D{{Key: "operatorName", Value: "$or"}, {Key: "clausesSatisfied", Value: x.clauses(n.Nodes, true)}}
	case *Nor:
		return bson.D{{Key: "operatorName", Value: "$nor"}, {Key: "clausesNotSatisfied", Value: x.clauses(n.Nodes, false)}}
	case *Not:
		return bson.D{{Key: "operatorName", Value: "$not"}, {Key: "details", Value: x.failed(n.Node)}}
	case *Schema:
		return bson.D{{Key: "operatorName", Value: "$jsonSchema"}, {Key: "specifiedAs", Value: specified(n)}, {Key: "reason", Value: "schema matched"}}
	}
	return x.leaf(n, n, true)
}

// clauses explains those of nodes that pass, or those that do not.
func (x *explainer) clauses(nodes []Node, passing bool) bson.A {
	list := bson.A{}
	for i, n := range nodes {
		if x.passes(n) != passing {
			continue
		}
		var details bson.D
		if passing {
			details = x.passed(n)
		} else {
			details = x.failed(n)
		}
		list = append(list, bson.D{{Key: "index", Value: int32(i)}, {Key: "details", Value: details}})
	}
	return list
}

// specified is the clause as the language writes it.
func specified(n Node) bson.Raw { return document(n.appendTo) }

// leaf explains a test of a path; shown is how it is written, test is what was tested.
func (x *explainer) leaf(shown, test Node, passed bool) bson.D {
	name := operatorName(test)
	if shown != test {
		name = map[string]string{"$eq": "$ne", "$in": "$nin", "$exists": "$exists"}[name]
	}
	clause := specified(shown)
	if shown != test {
		path, _ := PathOf(test)
		arg := value.Lookup(value.Lookup(specified(test), path).Value, operatorName(test))
		if name == "$exists" {
			arg = value.Bool(false)
		}
		clause = document(func(dst []byte) []byte {
			return appendNamed(dst, bson.TypeEmbeddedDocument, path, func(dst []byte) []byte { return appendValue(dst, name, arg) })
		})
	}
	d := bson.D{{Key: "operatorName", Value: name}, {Key: "specifiedAs", Value: clause}}
	path, _ := PathOf(test)
	found := &collector{}
	e := eval{doc: x.doc, index: -1}
	e.reach(newPath(path, true), found)
	values := found.values
	reason := reasons[name][boolInt(passed)]
	if len(values) == 0 && name != "$exists" {
		reason = "field was missing"
	}
	d = append(d, bson.E{Key: "reason", Value: reason})
	switch {
	case name == "$exists":
	case len(values) == 1:
		d = append(d, bson.E{Key: "consideredValue", Value: values[0]})
		if name == "$type" {
			d = append(d, bson.E{Key: "consideredType", Value: value.TypeName(values[0].Type)})
		}
	case len(values) > 1:
		d = append(d, bson.E{Key: "consideredValues", Value: array(values)})
	}
	return d
}

// collector is a test that nothing passes until it has seen enough; it keeps what it sees. It is in no tree.
type collector struct{ values []bson.RawValue }

func (n *collector) test(v bson.RawValue) bool {
	if v.Type != 0 {
		n.values = append(n.values, v)
	}
	return len(n.values) == explainedMax
}

func (n *collector) appendTo(dst []byte) []byte { return dst }

// explainedMax is how many values an explanation shows.
const explainedMax = 20

func operatorName(n Node) string {
	switch n := n.(type) {
	case *Comparison:
		return n.Op.Name()
	case *In:
		return "$in"
	case *Exists:
		return "$exists"
	case *Type:
		return "$type"
	case *Mod:
		return "$mod"
	case *Regex:
		return "$regex"
	case *Size:
		return "$size"
	case *Bits:
		return n.Op.Name()
	}
	return "$elemMatch"
}

// reasons are why a test failed, and what it means that it did not.
var reasons = map[string][2]string{
	"$eq": {"comparison failed", "comparison succeeded"}, "$ne": {"comparison failed", "comparison succeeded"},
	"$lt": {"comparison failed", "comparison succeeded"}, "$lte": {"comparison failed", "comparison succeeded"},
	"$gt": {"comparison failed", "comparison succeeded"}, "$gte": {"comparison failed", "comparison succeeded"},
	"$in": {"no matching value found in array", "matching value found in array"}, "$nin": {"no matching value found in array",
		"matching value found in array"},
	"$exists": {"path does not exist", "path does exist"}, "$type": {"type did not match", "type did match"},
	"$mod":        {"$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"},
	"$regex":      {"regular expression did not match", "regular expression did match"},
	"$size":       {"array length was not equal to given size", "array length was equal to given size"},
	"$bitsAllSet": {"bitwise operator failed to match", "bitwise operator matched successfully"}, "$bitsAllClear": {
		"bitwise operator failed to match", "bitwise operator matched successfully"},
	"$bitsAnySet": {"bitwise operator failed to match", "bitwise operator matched successfully"}, "$bitsAnyClear": {
		"bitwise operator failed to match", "bitwise operator matched successfully"},
	"$elemMatch": {"array did not satisfy the child predicate", "array did satisfy the child predicate"},
}
