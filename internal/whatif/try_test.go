package whatif
import ("testing";"os";"compactd/internal/compaction";"compactd/internal/transcript")
func TestTry(t *testing.T){
 var ps []Policy
 for _,n:=range []string{"default","neurolink","claude"} { p,_:=compaction.Preset(n); c,err:=compaction.NewConfig(p, compaction.CustomOf(p.Profile).Windows()); if err!=nil {t.Fatal(err)}; ps=append(ps,Policy{n,c}) }
 r:=NewReport(ps,Options{})
 ss,err:=transcript.Read(os.Getenv("S")); if err!=nil {t.Fatal(err)}
 for _,s:=range ss { if err:=r.Add(t.Context(),FromTranscript(s)); err!=nil {t.Fatal(err)} }
 r.Write(os.Stdout)
}
