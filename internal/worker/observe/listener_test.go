package observe_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/observe"
)

// canary is text of a conversation: no line of the log may hold it.
const canary = "canary-7c1d5e"

// Tee passes every field on, to each of its listeners, in their order; one that
// it drops fails here.
func TestTee(t *testing.T) {
	var got []string
	names := reflect.TypeFor[observe.Listener]()
	listener := func(who string) observe.Listener {
		var l observe.Listener
		v := reflect.ValueOf(&l).Elem()
		for i := range v.NumField() {
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				got = append(got, who+" "+names.Field(i).Name)
				return nil
			}))
		}
		return l
	}
	v := reflect.ValueOf(observe.Tee(observe.Listener{}, listener("a"), observe.Listener{}, listener("b")))
	for i := range v.NumField() {
		name := names.Field(i).Name
		if v.Field(i).IsNil() {
			t.Errorf("Tee drops %s", name)
			continue
		}
		got = nil
		v.Field(i).Call([]reflect.Value{reflect.Zero(v.Field(i).Type().In(0))})
		if want := []string{"a " + name, "b " + name}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s calls %q, want %q", name, got, want)
		}
	}
}

// Without listeners there is nothing to call.
func TestTeeOfNone(t *testing.T) {
	v := reflect.ValueOf(observe.Tee())
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			t.Errorf("%s is not nil", v.Type().Field(i).Name)
		}
	}
}

// The log has one line for each thing that an operator wants to know, with the
// facts in fields, and no message text or hint of a rejection.
func TestLogListener(t *testing.T) {
	var buf bytes.Buffer
	l := observe.LogListener(zerolog.New(&buf))
	at := events.Address{Tenant: "acme", Session: "s1"}
	l.ShareAcquired(observe.ShareAcquired{})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: 3, Epoch: 2, Cursor: 17, Snapshot: 8, Replayed: 9, Sessions: 4})
	l.Snapshotted(observe.Snapshotted{Partition: 3, Cursor: 17, Bytes: 4096})
	l.Compacted(observe.Compacted{Partition: 3, Address: at, Body: &events.Compacted{
		Generation: 2, Compacted: true, Reason: events.ReasonThreshold, TokensBefore: 100, TokensAfter: 60,
		StagesUsed: []events.Stage{events.StagePrune}, Messages: []codec.Raw{codec.Raw(`"` + canary + `"`)},
	}})
	l.Compacted(observe.Compacted{Partition: 3, Address: at, Body: &events.Compacted{Code: events.CodeNothingToDo}})
	l.Rejected(observe.Rejected{Partition: 3, Address: at, Body: &events.Rejected{
		Seq: 18, Kind: events.KindTurn, Code: events.CodeBadJSON, Message: canary, Hint: canary,
	}})
	l.ModelCalled(observe.ModelCalled{Address: at, Lane: events.LaneNormal, Job: "j", Model: "p/m", Usage: events.SummaryUsage{Input: 9, Output: 2}})
	l.ModelCalled(observe.ModelCalled{Address: at, Lane: events.LaneNormal, Job: "j", Model: "p/m", Err: errors.New("busy")})
	l.OverQuota(observe.OverQuota{Address: at, Lane: events.LaneBackground, Job: "j", Model: "p/m"})
	l.SummaryDelayed(observe.SummaryDelayed{Address: at, Lane: events.LaneNormal, Job: "j", Attempt: 2, Pause: 7 * time.Second, Err: errors.New("busy")})
	l.SummaryDone(observe.SummaryDone{Address: at, Lane: events.LaneNormal, Job: "j", Attempt: 3, Model: "p/m", Usage: events.SummaryUsage{Input: 9, Output: 2}})
	l.SummaryDone(observe.SummaryDone{Address: at, Lane: events.LaneNormal, Job: "j", Attempt: 6, Failure: "dead"})
	l.Retrying(observe.Retrying{Partition: 3, Step: "commit", Err: errors.New("no room")})
	l.Retrying(observe.Retrying{Partition: -1, Step: "heartbeat", Err: errors.New("no answer")})
	l.PartitionReleased(observe.PartitionReleased{Partition: 3})
	l.PartitionReleased(observe.PartitionReleased{Partition: 3, Err: errors.New("taken over")})
	l.PartitionFailed(observe.PartitionFailed{Partition: 3, Err: errors.New("no room"), Pause: time.Second})
	l.Fetched(observe.Fetched{Partition: 3, Seq: 7, Err: errors.New("too large")})
	want := []string{
		`{"level":"info","partition":3,"epoch":2,"cursor":17,"snapshot":8,"events":9,"sessions":4,"took_ms":0,"message":"partition acquired"}`,
		`{"level":"info","partition":3,"cursor":17,"bytes":4096,"took_ms":0,"message":"snapshot stored"}`,
		`{"level":"info","partition":3,"tenant":"acme","session":"s1","generation":2,"reason":"threshold","code":"","stages":["prune"],"tokens_before":100,"tokens_after":60,"message":"session compacted"}`,
		`{"level":"info","partition":3,"tenant":"acme","session":"s1","generation":0,"reason":"","code":"nothing_to_do","stages":null,"tokens_before":0,"tokens_after":0,"message":"session not compacted"}`,
		`{"level":"warn","partition":3,"tenant":"acme","session":"s1","seq":18,"kind":"turn","code":"bad_json","message":"event rejected"}`,
		`{"level":"info","model":"p/m","input_tokens":9,"output_tokens":2,"tenant":"acme","session":"s1","lane":"normal","message":"model called"}`,
		`{"level":"warn","error":"busy","model":"p/m","input_tokens":0,"output_tokens":0,"tenant":"acme","session":"s1","lane":"normal","message":"model called"}`,
		`{"level":"warn","tenant":"acme","session":"s1","lane":"background","model":"p/m","message":"model quota used up"}`,
		`{"level":"warn","error":"busy","tenant":"acme","session":"s1","lane":"normal","attempt":2,"pause_ms":7000,"message":"summary delayed"}`,
		`{"level":"info","tenant":"acme","session":"s1","lane":"normal","code":"","model":"p/m","input_tokens":9,"output_tokens":2,"attempt":3,"took_ms":0,"message":"summary done"}`,
		`{"level":"warn","tenant":"acme","session":"s1","lane":"normal","code":"dead","model":"","input_tokens":0,"output_tokens":0,"attempt":6,"took_ms":0,"message":"summary done"}`,
		`{"level":"warn","partition":3,"step":"commit","error":"no room","message":"retrying"}`,
		`{"level":"warn","step":"heartbeat","error":"no answer","message":"retrying"}`,
		`{"level":"info","partition":3,"message":"partition released"}`,
		`{"level":"error","error":"taken over","partition":3,"message":"partition released"}`,
		`{"level":"error","error":"no room","partition":3,"pause_ms":1000,"message":"partition failed, opening it again"}`,
		`{"level":"warn","partition":3,"seq":7,"error":"too large","message":"event read by its sequence"}`,
	}
	got := strings.Split(strings.TrimSuffix(buf.String(), "\n"), "\n")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("log is\n%s\nwant\n%s", buf.String(), strings.Join(want, "\n"))
	}
}

// The partitions that are acquired at a start are one line, which has come when the start
// is over, or when one of them is lost before. Later ones, and one alone, are a line each.
func TestLogOfAStart(t *testing.T) {
	var buf bytes.Buffer
	l := observe.LogListener(zerolog.New(&buf))
	acquire := func(ids ...int) {
		for _, id := range ids {
			l.PartitionAcquired(observe.PartitionAcquired{
				Partition: id, Epoch: uint64(10 + id), Cursor: 17, Snapshot: measure.Seq(id % 2), Replayed: id, Sessions: 1, Took: time.Duration(20-id) * time.Second,
			})
		}
	}
	check := func(want ...string) {
		t.Helper()
		if got := strings.Split(strings.TrimSuffix(buf.String(), "\n"), "\n"); !slices.Equal(got, want) {
			t.Errorf("log is\n%s\nwant\n%s", buf.String(), strings.Join(want, "\n"))
		}
		buf.Reset()
	}
	acquire(7, 0, 2, 1)
	check("")
	l.PartitionReleased(observe.PartitionReleased{Partition: 2})
	check(`{"level":"info","acquired":"0-2,7","count":4,"epoch":17,"from_snapshot":2,"events":10,"sessions":4,"took_ms":20000,"message":"partitions acquired"}`,
		`{"level":"info","partition":2,"message":"partition released"}`)
	acquire(3)
	check("")
	l.PartitionReleased(observe.PartitionReleased{Partition: 3})
	check(`{"level":"info","partition":3,"epoch":13,"cursor":17,"snapshot":1,"events":3,"sessions":1,"took_ms":17000,"message":"partition acquired"}`,
		`{"level":"info","partition":3,"message":"partition released"}`)
	acquire(5, 4, 6)
	l.ShareAcquired(observe.ShareAcquired{Partitions: 6})
	check(`{"level":"info","acquired":"4-6","count":3,"epoch":16,"from_snapshot":1,"events":15,"sessions":3,"took_ms":16000,"message":"partitions acquired"}`)
	for _, id := range []int{3, 2} {
		acquire(id)
		check(fmt.Sprintf(`{"level":"info","partition":%d,"epoch":%d,"cursor":17,"snapshot":%d,"events":%[1]d,"sessions":1,"took_ms":%[4]d,"message":"partition acquired"}`,
			id, 10+id, id%2, (20-id)*1000))
	}
}
