package wal

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/pierrec/lz4/v4"

	"github.com/multiforadb/multiforadb/engine/env/probe"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// plan is what Recover decided: which parts of which segments count, and which blocks.
type plan struct {
	spans   []span // without gaps where it matters: from the checkpoint on
	durable LSN    // D
	end     LSN
	blocks  []found // from the checkpoint to end
	top     *header // of the newest epoch; nil if there is no log
}

// span is the part [lo, hi) of the log, which seg holds.
type span struct {
	seg    *segment
	lo, hi LSN
}

// found is an accepted block.
type found struct {
	block
	seg *segment
}

// Recover decides what the log holds, for a database whose checkpoint is at from and that retains the log from oldest on
// (oldest <= from; both are 0 for a database that never had a checkpoint). The log ends at end. Damage is an error that wraps
// page.ErrCorrupt and names the place. Nothing is changed: Recover may be asked again, with another checkpoint.
func (l *Log) Recover(from, oldest LSN) (end LSN, err error) {
	switch {
	case oldest > from:
		panic(fmt.Sprintf("wal: oldest %d is after the checkpoint %d", oldest, from))
	case len(l.live) > 0:
		panic("wal: Recover after Accept")
	}
	l.plan = nil
	p := &plan{durable: from, end: from}
	if len(l.found) == 0 && len(l.bad) == 0 && from == 0 {
		l.plan = p
		return 0, nil
	}
	if err := l.choose(p, from, oldest); err != nil {
		return 0, err
	}
	if err := p.walk(from); err != nil {
		return 0, err
	}
	l.plan = p
	return p.end, nil
}

// choose finds the segments that count, and D.
func (l *Log) choose(p *plan, from, oldest LSN) error {
	for _, s := range l.found {
		if p.top == nil || s.epoch > p.top.epoch {
			p.top = &s.header
		}
	}
	p.spans = view(l.found, p.top)
	for len(p.spans) > 1 && p.spans[0].hi <= oldest {
		p.spans = p.spans[1:]
	}
	// Numbers rise with LSNs, so a bad header matters unless it is of a segment before those that are needed.
	for _, b := range l.bad {
		if len(p.spans) == 0 || b.id > p.spans[0].seg.id || p.spans[0].lo > oldest {
			return b.err
		}
	}
	for _, lsn := range []LSN{oldest, from} {
		if !covered(p.spans, lsn) {
			return fmt.Errorf("wal: LSN %d: no segment holds it, and a checkpoint at LSN %d needs it: %w", lsn, lsn, page.ErrCorrupt)
		}
	}
	for _, sp := range p.spans {
		if sp.seg.epoch != p.top.epoch {
			continue
		}
		p.durable = max(p.durable, sp.seg.durable)
		for i := range sp.seg.blocks {
			p.durable = max(p.durable, sp.seg.blocks[i].durable)
		}
	}
	return nil
}

// view gives, in order, the parts of segments that count if top is of the newest epoch: of each epoch what lies between its
// beginning and the next one's. Segments of epochs that do not lead to top do not count.
func view(segs []*segment, top *header) []span {
	var spans []span
	limit := lsnMax
	for h := top; h != nil; {
		var of *header
		for _, s := range slices.Backward(segs) {
			if s.epoch != h.epoch {
				continue
			}
			of = &s.header
			if s.first < limit {
				spans = append(spans, span{seg: s, lo: s.first, hi: min(s.end(), limit)})
				limit = s.first
			}
		}
		h = nil
		if of != nil {
			limit = min(limit, of.begin)
			for _, s := range segs {
				if s.epoch == of.previous {
					h = &s.header
				}
			}
		}
	}
	slices.Reverse(spans)
	return spans
}

func covered(spans []span, lsn LSN) bool {
	return slices.ContainsFunc(spans, func(sp span) bool { return sp.lo <= lsn && lsn <= sp.hi })
}

// walk goes from block to block, from the checkpoint to the end of the log.
func (p *plan) walk(from LSN) error {
	var (
		pos      = from // of the next block
		batch    = from // beginning of its batch
		prev     *found // the block before, of the same epoch
		complete = 0    // blocks of whole batches
		i, j     = 0, 0 // span, and block in its segment
	)
	for {
		for i < len(p.spans) && p.spans[i].hi <= pos {
			if i, j = i+1, 0; i < len(p.spans) && p.spans[i].lo == p.spans[i].seg.begin {
				prev = nil
			}
		}
		reason := ""
		switch {
		case i == len(p.spans) || pos < p.spans[i].lo:
			reason = "no segment holds it"
		default:
			sp := p.spans[i]
			bs := sp.seg.blocks
			j += sort.Search(len(bs)-j, func(k int) bool { return bs[j+k].lsn >= pos })
			switch {
			case j == len(bs) || bs[j].lsn != pos || bs[j].end() > sp.hi:
				reason = "no valid block"
			case bs[j].first != batch:
				reason = fmt.Sprintf("a block of a batch that begins at LSN %d, not %d", bs[j].first, batch)
			case prev != nil && bs[j].previous != prev.crc || pos == sp.seg.begin && bs[j].previous != 0:
				reason = "a block that follows another than the one before it"
			default:
				p.blocks = append(p.blocks, found{block: bs[j], seg: sp.seg})
			}
		}
		if reason != "" {
			if batch < p.durable {
				return fmt.Errorf("wal: %s: %s, below the durable LSN %d: %w", p.place(pos), reason, p.durable, page.ErrCorrupt)
			}
			probe.LogBatchCut.HitIf(complete < len(p.blocks))
			p.blocks, p.end = p.blocks[:complete], batch
			return nil
		}
		prev = &p.blocks[len(p.blocks)-1]
		pos = prev.end()
		if prev.last() {
			if batch < p.durable && p.durable < pos {
				return fmt.Errorf("wal: %s: LSN %d, called durable, is inside of a batch: %w", p.place(batch), p.durable, page.ErrCorrupt)
			}
			batch, complete = pos, len(p.blocks)
		}
	}
}

// place names a position of the log.
func (p *plan) place(lsn LSN) string {
	for _, sp := range slices.Backward(p.spans) {
		if sp.lo <= lsn && lsn < sp.hi {
			return fmt.Sprintf("%s, offset %d, LSN %d", sp.seg.name, sp.seg.offset(lsn), lsn)
		}
	}
	return fmt.Sprintf("LSN %d", lsn)
}

// Replay gives the records of all batches from from on, where a batch begins, to the end. f gets whole records, those of a
// large batch in several calls: end is the end of their batch, and last is set in the batch's last call. Marks are not
// given. records is valid during the call. Replay comes after Recover, before the first Append, Prepare or Release.
func (l *Log) Replay(from LSN, f func(end LSN, last bool, records []byte) error) error {
	blocks := l.plan.blocks
	i, ok := slices.BinarySearchFunc(blocks, from, func(b found, lsn LSN) int { return cmp.Compare(b.lsn, lsn) })
	if !ok && from != l.plan.end || ok && blocks[i].first != from {
		panic(fmt.Sprintf("wal: replay from LSN %d, where no batch begins", from))
	}
	var (
		raw   []byte // records not yet given, the last perhaps in part
		given = true // something of the batch, or there is nothing to give
		buf   []byte
		end   LSN
	)
	for ; i < len(blocks); i++ {
		b := &blocks[i]
		if b.lsn == b.first {
			end = batchEnd(blocks[i:])
			given = false
		}
		var err error
		if raw, err = b.appendRaw(raw, &buf); err != nil {
			return err
		}
		n := 0
		for k := nextRecord(raw); k > 0; k = nextRecord(raw[n:]) {
			n += k
		}
		if b.last() && n < len(raw) {
			return fmt.Errorf("wal: %s: the batch that begins at LSN %d ends inside of a record: %w", b.place(), b.first, page.ErrCorrupt)
		}
		if n > 0 || b.last() && given {
			if err := f(end, b.last(), raw[:n]); err != nil {
				return err
			}
			given = true
			raw = append(raw[:0], raw[n:]...)
		}
	}
	return nil
}

// batchEnd is the end of the batch that begins with the first of blocks.
func batchEnd(blocks []found) LSN {
	i := 0
	for !blocks[i].last() {
		i++
	}
	return blocks[i].end()
}

// appendRaw appends what the block holds.
func (b *found) appendRaw(raw []byte, buf *[]byte) ([]byte, error) {
	d, err := b.seg.read(&b.block, buf)
	if err != nil {
		return nil, err
	}
	payload := d[blockHeaderSize:]
	if b.flags&flagCompressed == 0 {
		return append(raw, payload...), nil
	}
	at, n := len(raw), int(b.raw)
	raw = slices.Grow(raw, n)[:at+n]
	if m, err := lz4.UncompressBlock(payload, raw[at:]); err != nil || m != n {
		return nil, fmt.Errorf("wal: %s: the payload does not decompress to %d bytes: %w", b.place(), n, page.ErrCorrupt)
	}
	return raw, nil
}

func (b *found) place() string {
	return fmt.Sprintf("%s, offset %d, LSN %d", b.seg.name, b.seg.offset(b.lsn), b.lsn)
}

func sortByID[T any](s []T, id func(T) uint64) {
	slices.SortFunc(s, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
}
