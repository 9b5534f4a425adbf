package linearizability

import "math/rand/v2"

// workload is a way for clients to behave, and the model of what they should be told.
type workload struct {
	name    string
	clients int // at most
	ops     int // at most, in one history
	next    func(s *session) Input
	// last is what is read in the end, when nothing else goes on.
	last   func(emit func(Input))
	model  func() model
	unique bool // v has a unique index
}

const (
	docsMax  = 6 // documents are numbered from 0
	namesMax = 6 // names are numbered from 1: in Claims 0 is no owner
	bulkMax  = 6 // documents in a group; their _ids are bulkStep × group + 0, 1, 2 …
	bulkStep = 100
)

// padding makes some groups too large for one write of the engine, so that its prefixes are seen.
const padding = 140 << 10

var workloads = []workload{
	{name: "register", clients: 8, ops: 300, next: nextRegister, last: lastDocs, model: documents(true)},
	{name: "counter", clients: 8, ops: 300, next: nextCounter, last: lastDocs, model: documents(true)},
	{name: "board", clients: 6, ops: 200, next: nextBoard, last: lastAll, model: documents(false)},
	{name: "claims", clients: 8, ops: 200, next: nextClaim, last: lastClaims, model: claims, unique: true},
	{name: "bulk", clients: 5, ops: 100, next: nextBulk, last: lastAll, model: bulk},
}

func workloadOf(name string, seed uint64) *workload {
	for i := range workloads {
		if workloads[i].name == name {
			return &workloads[i]
		}
	}
	return &workloads[seed%uint64(len(workloads))]
}

// session is one client: what it knows of its own operations decides what it asks next.
type session struct {
	client int
	rng    *rand.Rand
	seq    int64
	docs   int64          // how many documents its history has
	seen   [docsMax]int64 // the v that it saw last
	own    []int64        // _ids that it has claimed, groups that it has inserted
}

func newSessions(w *workload, rng *rand.Rand) []*session {
	n := 2 + rng.IntN(w.clients-1)
	docs := 1 + rng.Int64N(docsMax)
	out := make([]*session, n)
	for i := range out {
		out[i] = &session{client: i, rng: rand.New(rand.NewPCG(rng.Uint64(), uint64(i))), docs: docs}
	}
	return out
}

// unique is a value that nobody else writes, in any history of this many clients and operations.
func (s *session) unique() int64 { s.seq++; return s.seq*10 + int64(s.client) }

// weighted draws an index with the given weights.
func (s *session) weighted(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	for i, k := 0, s.rng.IntN(sum); ; i++ {
		if k -= weights[i]; k < 0 {
			return i
		}
	}
}

// learn takes note of a reply.
func (s *session) learn(in Input, out Output) {
	switch in.Kind {
	case Find, Add:
		s.seen[in.Doc] = out.Seen
	case Set, Swap:
		s.seen[in.Doc] = in.Value
	case Claim:
		if !out.Dup {
			s.own = append(s.own, in.Doc)
		}
	case InsertMany:
		if out.N > 0 {
			s.own = append(s.own, in.Doc)
		}
	}
}

func nextRegister(s *session) Input {
	doc := s.rng.Int64N(s.docs)
	kind := []Kind{Find, Set, Swap, Cas, Insert, Delete}[s.weighted(40, 15, 12, 15, 8, 10)]
	return Input{Kind: kind, Doc: doc, Value: s.unique(), If: s.seen[doc]}
}

func nextCounter(s *session) Input {
	kind := []Kind{Find, Inc, Add}[s.weighted(30, 40, 30)]
	return Input{Kind: kind, Doc: s.rng.Int64N(s.docs), Value: 1 + s.rng.Int64N(1000)}
}

func nextBoard(s *session) Input {
	doc := s.rng.Int64N(s.docs)
	kind := []Kind{Find, Set, Cas, Insert, Delete, Inc, Scan, Count}[s.weighted(15, 20, 10, 8, 10, 7, 22, 8)]
	return Input{Kind: kind, Doc: doc, Value: s.unique(), If: s.seen[doc]}
}

func nextClaim(s *session) Input {
	name := 1 + s.rng.Int64N(namesMax)
	kind := []Kind{Claim, Release, Rename, Owner, Scan, Count}[s.weighted(35, 20, 15, 15, 10, 5)]
	if kind == Rename && len(s.own) == 0 {
		kind = Claim
	}
	switch kind {
	case Claim:
		return Input{Kind: Claim, Doc: s.unique(), Value: name}
	case Rename:
		return Input{Kind: Rename, Doc: s.own[max(0, len(s.own)-1-s.rng.IntN(3))], Value: name}
	}
	return Input{Kind: kind, Value: name}
}

func nextBulk(s *session) Input {
	kind := []Kind{InsertMany, Scan, Count, CountGroup}[s.weighted(25, 40, 20, 15)]
	if kind == CountGroup && len(s.own) == 0 {
		kind = Scan
	}
	switch kind {
	case InsertMany:
		in := Input{Kind: InsertMany, Doc: s.unique(), Value: 1 + s.rng.Int64N(bulkMax)}
		if len(s.own) > 0 && s.rng.IntN(5) == 0 {
			in.If = bulkStep * s.own[s.rng.IntN(len(s.own))]
		}
		return in
	case CountGroup:
		return Input{Kind: CountGroup, Doc: s.own[s.rng.IntN(len(s.own))]}
	}
	return Input{Kind: kind}
}

func lastDocs(emit func(Input)) {
	for doc := range int64(docsMax) {
		emit(Input{Kind: Find, Doc: doc})
	}
}

func lastAll(emit func(Input)) {
	emit(Input{Kind: Scan})
	emit(Input{Kind: Count})
}

func lastClaims(emit func(Input)) {
	for name := int64(1); name <= namesMax; name++ {
		emit(Input{Kind: Owner, Value: name})
	}
	lastAll(emit)
}

// group is what InsertMany inserts: the _ids of its documents, and how many it can insert, and the padding of each.
func (in Input) group() (ids []int64, fit int, pad int) {
	for i := range in.Value {
		ids = append(ids, bulkStep*in.Doc+i)
	}
	fit = len(ids)
	if in.If != 0 {
		fit = len(ids) / 2
		ids[fit] = in.If
	}
	if in.Doc%3 == 0 {
		pad = padding
	}
	return ids, fit, pad
}
