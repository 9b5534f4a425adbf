package model

import (
	"strings"
	"testing"
)

func set(id string, k int64) *Op {
	return &Op{Kind: Update, NS: "a.b", Filter: ByID(id), Upsert: true, Changes: []Change{{Op: "$set", Field: "k", Value: N(k)}}}
}

func find(id string) *Op { return &Op{Kind: Find, NS: "a.b", Filter: ByID(id)} }

func insert(ids ...string) *Op {
	op := &Op{Kind: Insert, NS: "a.b", Ordered: true}
	for _, id := range ids {
		op.Docs = append(op.Docs, NewDoc(id, Field{"g", S(Group(id))}))
	}
	return op
}

// saw is what a search that gives these documents answers.
func saw(docs ...*Doc) Outcome { return Outcome{Reply: Saw(docs), Docs: docs} }

func end(t *testing.T, h *History, c *Call, out Outcome) {
	t.Helper()
	if err := h.End(c, out); err != nil {
		t.Fatal(err)
	}
}

func TestRepliesMustBeExplained(t *testing.T) {
	one, two := NewDoc("h0-0", Field{"k", N(1)}), NewDoc("h0-0", Field{"k", N(2)})
	upserted, updated := Outcome{Reply: Wrote(0, 0, true, "")}, Outcome{Reply: Wrote(1, 1, false, "")}
	for _, c := range []struct {
		name string
		run  func(h *History) error
		want string // of the error; "" is none
	}{
		{"a search before the reply sees it or not", func(h *History) error {
			w := h.Begin("w", set("h0-0", 1))
			end(t, h, h.Begin("r", find("h0-0")), saw())
			end(t, h, h.Begin("r", find("h0-0")), saw(one))
			return h.End(w, upserted)
		}, ""},
		{"what was seen does not go away", func(h *History) error {
			h.Begin("w", set("h0-0", 1))
			end(t, h, h.Begin("r", find("h0-0")), saw(one))
			return h.End(h.Begin("r", find("h0-0")), saw())
		}, "no order"},
		{"what was acknowledged is seen", func(h *History) error {
			end(t, h, h.Begin("w", set("h0-0", 1)), upserted)
			return h.End(h.Begin("r", find("h0-0")), saw())
		}, "no order"},
		{"one of two inserts, one of two updates", func(h *History) error {
			a, b := h.Begin("a", set("h0-0", 1)), h.Begin("b", set("h0-0", 2))
			end(t, h, a, updated)
			end(t, h, b, upserted)
			return h.End(h.Begin("r", find("h0-0")), saw(one))
		}, ""},
		{"the one that updates is the later", func(h *History) error {
			a, b := h.Begin("a", set("h0-0", 1)), h.Begin("b", set("h0-0", 2))
			end(t, h, a, updated)
			end(t, h, b, upserted)
			return h.End(h.Begin("r", find("h0-0")), saw(two))
		}, "no order"},
		{"both cannot insert", func(h *History) error {
			a, b := h.Begin("a", set("h0-0", 1)), h.Begin("b", set("h0-0", 2))
			end(t, h, a, upserted)
			return h.End(b, upserted)
		}, "no order"},
		{"inserts are seen in their order", func(h *History) error {
			h.Begin("w", insert("c0-1", "c0-2", "c0-3"))
			end(t, h, h.Begin("r", &Op{Kind: Find, NS: "a.b"}), saw(NewDoc("c0-1", Field{"g", S("c0")})))
			return h.End(h.Begin("r", &Op{Kind: Find, NS: "a.b"}), saw(NewDoc("c0-1", Field{"g", S("c0")}), NewDoc("c0-3", Field{"g", S("c0")})))
		}, "no order"},
		{"what was stopped does no more", func(h *History) error {
			end(t, h, h.Begin("w", insert("c0-1", "c0-2")), Outcome{Stopped: true, N: 1})
			return h.End(h.Begin("r", &Op{Kind: Count, NS: "a.b"}), Outcome{Reply: "2"})
		}, "no order"},
		{"an insert goes by the name that a collection has", func(h *History) error {
			end(t, h, h.Begin("w", insert("c0-1")), Outcome{Reply: Wrote(1, 1, false, "")})
			late := h.Begin("w", insert("c1-1"))
			end(t, h, h.Begin("d", &Op{Kind: Rename, NS: "a.b", To: "a.c"}), Outcome{Reply: "ok"})
			end(t, h, h.Begin("r", &Op{Kind: Count, NS: "a.c"}), Outcome{Reply: "1"})
			end(t, h, late, Outcome{Reply: Wrote(1, 1, false, "")})
			return h.End(h.Begin("r", &Op{Kind: Count, NS: "a.b"}), Outcome{Reply: "0"})
		}, "no order"},
	} {
		err := c.run(NewHistory(nil))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestPowerCutLeavesPrefixes(t *testing.T) {
	h := NewHistory(nil)
	end(t, h, h.Begin("w", insert("c0-1")), Outcome{Reply: Wrote(1, 1, false, "")})
	h.Begin("w", insert("c0-2", "c0-3", "c0-4"))
	h.Begin("v", set("h0-0", 1))
	h.Begin("d", &Op{Kind: CreateIndex, NS: "a.b", Index: Index{Name: "k", Fields: []string{"k"}}})
	cut := h.Cut()
	index := []Index{{Name: "k", Fields: []string{"k"}}}
	hot := NewDoc("h0-0", Field{"k", N(1)})
	for _, c := range []struct {
		docs    []*Doc
		indexes []Index
		ok      bool
	}{
		{insert("c0-1").Docs, nil, true},
		{insert("c0-1", "c0-2").Docs, index, true},
		{append(insert("c0-1", "c0-2", "c0-3", "c0-4").Docs, hot), nil, true},
		{insert("c0-1", "c0-3").Docs, nil, false},
		{insert("c0-2").Docs, nil, false},
		{append(insert("c0-1").Docs, NewDoc("h0-0", Field{"k", N(2)})), nil, false},
		{insert("c0-1", "c9-9").Docs, nil, false},
		{insert("c0-1").Docs, []Index{{Name: "k", Fields: []string{"k"}, Unique: true}}, false},
	} {
		err := cut.Judge(Observed([]*Coll{{NS: "a.b", Docs: c.docs, Indexes: c.indexes}}))
		if (err == nil) != c.ok {
			t.Errorf("%v %v: got %v", c.docs, c.indexes, err)
		}
	}
	if err := cut.Judge(Observed(nil)); err == nil {
		t.Error("a collection is gone, and nothing was said")
	}
}
