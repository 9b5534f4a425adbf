package linearizability

import (
	"slices"
	"strings"
)

// model says what operations do to a state and what their replies are, one operation at a time. States are comparable values.
type model interface {
	start() any
	// apply gives the state after in and the reply to it. ok is false if in cannot happen in this state.
	apply(state any, in Input) (next any, want Output, ok bool)
	// parts are the operations that the checker sees for op. They share its call and return.
	parts(op Op) []Op
	// perDocument says that operations on different documents have nothing to do with each other.
	perDocument() bool
}

// agrees says whether a client may have been told out where want is right.
func (out Output) agrees(want Output) bool {
	return out.Dup == want.Dup && out.N == want.N && out.Seen == want.Seen && out.groups == want.groups && slices.Equal(out.Docs, want.Docs)
}

// documentsModel is registers and counters: the v of each document, 0 if it is not there.
type documentsModel struct{ apart bool }

func documents(perDocument bool) func() model {
	return func() model { return documentsModel{perDocument} }
}

func (documentsModel) start() any          { return [docsMax]int64{} }
func (documentsModel) parts(op Op) []Op    { return []Op{op} }
func (m documentsModel) perDocument() bool { return m.apart }

func (documentsModel) apply(state any, in Input) (next any, want Output, ok bool) {
	docs := state.([docsMax]int64)
	v := &docs[in.Doc]
	had := int64(0)
	if *v != 0 {
		had = 1
	}
	switch in.Kind {
	case Find:
		want.Seen = *v
	case Set:
		want.N, *v = had, in.Value
	case Swap:
		want.Seen, *v = *v, in.Value
	case Cas:
		if had == 1 && *v == in.If {
			want.N, *v = 1, in.Value
		}
	case Insert:
		if want.Dup = had == 1; !want.Dup {
			*v = in.Value
		}
	case Delete:
		want.N, *v = had, 0
	case Inc:
		want.N = had
		*v += in.Value
	case Add:
		*v += in.Value
		want.Seen = *v
	case Count:
		for _, v := range docs {
			if v != 0 {
				want.N++
			}
		}
	case Scan:
		for id, v := range docs {
			if v != 0 {
				want.Docs = append(want.Docs, Doc{int64(id), v})
			}
		}
	default:
		return nil, want, false
	}
	return docs, want, true
}

// claimsModel is a unique index: the _id of the document that has each name, 0 if none has.
type claimsModel struct{}

func claims() model { return claimsModel{} }

func (claimsModel) start() any        { return [namesMax + 1]int64{} }
func (claimsModel) parts(op Op) []Op  { return []Op{op} }
func (claimsModel) perDocument() bool { return false }

func (claimsModel) apply(state any, in Input) (next any, want Output, ok bool) {
	owners := state.([namesMax + 1]int64)
	owner := &owners[in.Value]
	switch in.Kind {
	case Claim:
		if want.Dup = *owner != 0; !want.Dup {
			*owner = in.Doc
		}
	case Release:
		if *owner != 0 {
			want.N, *owner = 1, 0
		}
	case Rename:
		had := slices.Index(owners[:], in.Doc)
		switch {
		case had < 0:
		case *owner != 0 && *owner != in.Doc:
			want.Dup = true
		default:
			owners[had] = 0
			want.N, *owner = 1, in.Doc
		}
	case Owner:
		want.Seen = *owner
	case Count, Scan:
		for name, id := range owners {
			if id != 0 {
				want.N++
				want.Docs = append(want.Docs, Doc{id, int64(name)})
			}
		}
		if in.Kind == Count {
			want.Docs = nil
		} else {
			want.N = 0
			sortDocs(want.Docs)
		}
	default:
		return nil, want, false
	}
	return owners, want, true
}

func sortDocs(docs []Doc) { slices.SortFunc(docs, func(a, b Doc) int { return int(a.ID - b.ID) }) }

// bulkModel is how many documents of each group are there, in the order in which the groups first appear: a string, one byte
// a group, without the groups of which there is nothing at the end. Only a prefix of a group may ever be there.
type bulkModel struct{ number map[int64]int }

func bulk() model { return bulkModel{map[int64]int{}} }

func (bulkModel) start() any        { return "" }
func (bulkModel) perDocument() bool { return false }

func (m bulkModel) dense(group int64) int {
	if _, ok := m.number[group]; !ok {
		m.number[group] = len(m.number)
	}
	return m.number[group]
}

func (m bulkModel) parts(op Op) []Op {
	switch op.Kind {
	case InsertMany:
		_, fit, _ := op.group()
		op.Doc = int64(m.dense(op.Doc))
		if !op.Unknown && (op.N != int64(fit) || op.Dup != (op.If != 0)) {
			op.Kind = impossible
			return []Op{op}
		}
		op.Kind = insertPart
		parts := make([]Op, fit)
		for i := range parts {
			parts[i] = op
			parts[i].Input.Value, parts[i].Output = int64(i), Output{Unknown: op.Unknown}
		}
		return parts
	case CountGroup:
		op.Doc = int64(m.dense(op.Doc))
	case Scan:
		// Of a scan that saw no prefix, or a document twice, nothing that any state could equal is left.
		op.groups = "-"
		groups := []byte(nil)
		for _, d := range op.Docs {
			g, i := m.dense(d.ID/bulkStep), d.ID%bulkStep
			for len(groups) <= g {
				groups = append(groups, 0)
			}
			if int64(groups[g]) != i {
				return []Op{op}
			}
			groups[g]++
		}
		op.groups, op.Docs = "+"+string(groups), nil
	}
	return []Op{op}
}

func (bulkModel) apply(state any, in Input) (next any, want Output, ok bool) {
	groups := state.(string)
	at := func(g int64) int64 {
		if g < int64(len(groups)) {
			return int64(groups[g])
		}
		return 0
	}
	switch in.Kind {
	case insertPart:
		if at(in.Doc) != in.Value {
			return nil, want, false
		}
		b := []byte(groups + strings.Repeat("\x00", max(0, int(in.Doc)+1-len(groups))))
		b[in.Doc]++
		return string(b), want, true
	case Count:
		for g := range len(groups) {
			want.N += int64(groups[g])
		}
	case CountGroup:
		want.N = at(in.Doc)
	case Scan:
		want.groups = "+" + groups
	default:
		return nil, want, false
	}
	return groups, want, true
}
