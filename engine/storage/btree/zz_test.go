package btree_test
import ("testing";"math/rand/v2")
func TestRandFillTmp(t *testing.T){
 for _,n:=range []int{50000,70000,100000,140000,200000,300000}{ b:=newBench(t,0); r:=rand.New(rand.NewPCG(9,9)); for range n { b.put(scattered(r.IntN(1<<40)),record(1)) }; t.Log(n,b.leafFill(), b.head.Height) }
 b:=newBench(t,0); for i:=range 1000000 { b.put(objectID(i),record(i)) }; t.Log("asc 1e6", b.leafFill(), b.head.Pages, b.head.Height)
}
