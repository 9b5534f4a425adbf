package btree

import "github.com/multiforadb/multiforadb/engine/storage/page"

// Iter is a position in a tree: at an entry, or nowhere.
//
//	for ok := it.Seek(lo); ok && bytes.Compare(it.Key(), hi) < 0; ok = it.Next() { use(it.Key(), it.Value()) }
//	return it.Err()
//
// Always look at Err in the end: damage makes an Iter invalid like the end of the tree does. An edit of the tree ends the life of
// its Iters. Steps allocate nothing.
type Iter struct {
	t     Tree
	path  []spot // by level; path[0] is in the leaf
	valid bool
	err   error
	it    item   // the entry's, if hasItem
	key   []byte // the entry's, if hasKey
	large []byte // a value from overflow pages

	hasItem, hasKey bool
}

// spot is a page of the path, and which of its children or cells the path goes on with.
type spot struct {
	n   *node
	idx int
}

// Iter makes an Iter, which is nowhere yet.
func (t Tree) Iter() *Iter { return &Iter{t: t, path: make([]spot, t.Height)} }

// Valid reports whether the Iter is at an entry.
func (it *Iter) Valid() bool { return it.valid }

// Err is the damage that was met, if any. It stays.
func (it *Iter) Err() error { return it.err }

// Seek goes to the first entry whose key is not less than key; Seek(nil) to the first of all.
func (it *Iter) Seek(key []byte) bool {
	if !it.find(key) {
		return false
	}
	leaf := &it.path[0]
	if leaf.idx < leaf.n.count() {
		return it.arrive()
	}
	leaf.idx--
	return it.Next()
}

// SeekBefore goes to the last entry whose key is less than key.
func (it *Iter) SeekBefore(key []byte) bool { return it.find(key) && it.Prev() }

// SeekLast goes to the last entry of all.
func (it *Iter) SeekLast() bool {
	it.leave()
	if it.t.Root == 0 || it.err != nil {
		return false
	}
	return it.descend(it.t.Root, len(it.path)-1, true)
}

// Next goes to the entry behind.
func (it *Iter) Next() bool {
	if !it.valid {
		return false
	}
	leaf := &it.path[0]
	if leaf.idx+1 < leaf.n.count() {
		leaf.idx++
		return it.arrive()
	}
	it.leave()
	for level := 1; level < len(it.path); level++ {
		if p := &it.path[level]; p.idx < p.n.count() {
			p.idx++
			return it.into(level, false)
		}
	}
	return false
}

// Prev goes to the entry before.
func (it *Iter) Prev() bool {
	if !it.valid {
		return false
	}
	leaf := &it.path[0]
	if leaf.idx > 0 {
		leaf.idx--
		return it.arrive()
	}
	it.leave()
	for level := 1; level < len(it.path); level++ {
		if p := &it.path[level]; p.idx > 0 {
			p.idx--
			return it.into(level, true)
		}
	}
	return false
}

// Key is the entry's key, valid until the next move; nil if damage is met (see Err).
func (it *Iter) Key() []byte {
	if it.hasKey {
		return it.key
	}
	if !it.parse() {
		return nil
	}
	key, err := it.it.wholeKey(it.t.R, it.key[:0])
	if err != nil {
		it.fail(err)
		return nil
	}
	it.key, it.hasKey = key, true
	return key
}

// Value is the entry's value, valid until the next move; nil if damage is met (see Err).
func (it *Iter) Value() []byte {
	if !it.parse() {
		return nil
	}
	value, err := it.it.wholeValue(it.t.R, it.large[:0])
	if err != nil {
		it.fail(err)
		return nil
	}
	if it.it.valueRest > 0 {
		it.large = value
	}
	return value
}

// parse reads the cell, once for each position.
func (it *Iter) parse() bool {
	if it.hasItem || !it.valid {
		return it.valid
	}
	leaf := &it.path[0]
	i, err := leaf.n.item(leaf.idx)
	if err != nil {
		return it.fail(err)
	}
	it.it, it.hasItem = i, true
	return true
}

func (it *Iter) arrive() bool {
	it.valid, it.hasItem, it.hasKey = true, false, false
	return true
}

func (it *Iter) leave() { it.valid, it.hasItem, it.hasKey = false, false, false }

func (it *Iter) fail(err error) bool {
	it.leave()
	it.err, it.key = err, nil
	return false
}

// find sets the path to the first entry that is not less than key, which may be one behind the leaf's last.
func (it *Iter) find(key []byte) bool {
	it.leave()
	ref := it.t.Root
	if ref == 0 || it.err != nil {
		return false
	}
	for level := len(it.path) - 1; ; level-- {
		n, err := load(it.t.R, ref, level)
		if err != nil {
			return it.fail(err)
		}
		pos, equal, err := n.search(it.t.R, key)
		if err != nil {
			return it.fail(err)
		}
		if level == 0 {
			it.path[0] = spot{n, pos}
			return it.arrive()
		}
		if equal {
			pos++
		}
		it.path[level] = spot{n, pos}
		if ref, err = n.child(pos); err != nil {
			return it.fail(err)
		}
	}
}

// into goes to the first or last entry below the child that the path has at level.
func (it *Iter) into(level int, last bool) bool {
	p := &it.path[level]
	ref, err := p.n.child(p.idx)
	if err != nil {
		return it.fail(err)
	}
	return it.descend(ref, level-1, last)
}

// descend goes to the first or last entry below the page ref.
func (it *Iter) descend(ref page.Ref, level int, last bool) bool {
	for ; ; level-- {
		n, err := load(it.t.R, ref, level)
		if err != nil {
			return it.fail(err)
		}
		it.path[level] = spot{n, 0}
		if last {
			it.path[level].idx = n.count()
		}
		if level == 0 {
			break
		}
		if ref, err = n.child(it.path[level].idx); err != nil {
			return it.fail(err)
		}
	}
	if last {
		it.path[0].idx--
	}
	return it.arrive()
}
