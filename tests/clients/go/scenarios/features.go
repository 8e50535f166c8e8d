package scenarios

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	records         = 200
	phaseRecords    = 120
	groupPartitions = 6
	// Times that a group of 1, 3 and then 2 members may rebalance; each may bring what wasn't committed again.
	maxRebalances = 6
)

// From subscribing to a group's first record.
const firstRecord = time.Second

const (
	missing     = 1
	notInClient = 3
)

// The records with timestamps start an hour ago, well within any limit.
var firstTimestamp = time.Now().Add(-time.Hour).Truncate(time.Millisecond)

var features = map[string]func(Client){
	"none":        func(client Client) { withCodec(client, "none") },
	"gzip":        func(client Client) { withCodec(client, "gzip") },
	"snappy":      func(client Client) { withCodec(client, "snappy") },
	"lz4":         func(client Client) { withCodec(client, "lz4") },
	"zstd":        func(client Client) { withCodec(client, "zstd") },
	"first":       first,
	"groups":      groups,
	"static":      static,
	"cooperative": cooperative,
	"restart":     restart,
	"seek":        seek,
	"times":       times,
	"admin":       admin,
	"lag":         lag,
}

// Run runs the feature that the command line names, and ends the process with its status.
func Run(newClient func(bootstrap string) Client) {
	if len(os.Args) != 3 || features[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: PROGRAM BOOTSTRAP FEATURE")
		os.Exit(2)
	}
	defer func() {
		switch reason := recover().(type) {
		case nil:
			os.Exit(0)
		case NotInClient:
			fmt.Println(reason)
			os.Exit(notInClient)
		default:
			fmt.Println(reason)
			os.Exit(missing)
		}
	}()
	features[os.Args[2]](newClient(os.Args[1]))
}

func numbered(start, count int) []string {
	values := make([]string, count)
	for i := range values {
		values[i] = fmt.Sprintf("record %d", start+i)
	}
	return values
}

func valuesOf(records []Record) []string {
	values := make([]string, len(records))
	for i, record := range records {
		values[i] = record.Value
	}
	return values
}

func withCodec(client Client, codec string) {
	topic := NewName("codec")
	client.CreateTopic(topic, 1)
	client.Produce(topic, 0, numbered(0, records), codec, time.Time{})
	Require(slices.Equal(valuesOf(client.Read(topic, 0, records)), numbered(0, records)), "other records than were sent")
}

func first(client Client) {
	party := newParty(client, 1)
	party.sends(10)
	client.Read(party.topic, 0, 10)
	started := time.Now()
	party.joins("", false)
	party.until(func() bool { return len(party.seen) > 0 }, "a record")
	took := time.Since(started)
	party.ends()
	Require(took < firstRecord, "the first record within %v, not %v", firstRecord, took)
}

func groups(client Client) {
	party := newParty(client, groupPartitions)
	first := party.joins("", false)
	party.sends(phaseRecords)
	party.settles()
	party.readsAll()
	party.joins("", false)
	party.joins("", false)
	party.sends(phaseRecords)
	party.settles()
	party.sends(phaseRecords)
	party.readsAll()
	party.leaves(first)
	party.sends(phaseRecords)
	party.settles()
	party.readsAll()
	party.ends()
	for _, count := range party.seen {
		Require(count <= 1+maxRebalances, "records that came oftener than rebalances explain")
	}
}

func static(client Client) {
	party := newParty(client, 4)
	stays := party.joins("stays", false)
	party.settles()
	goes := party.joins("goes", false)
	party.settles()
	party.sends(40)
	party.readsAll()
	owned := goes.Partitions().Owned()
	_, rebalances := stays.Partitions().counts()
	party.leaves(goes)
	comesBack := party.joins("goes", false)
	party.settles()
	party.sends(40)
	party.readsAll()
	ownedAgain := comesBack.Partitions().Owned()
	slices.Sort(owned)
	slices.Sort(ownedAgain)
	Require(slices.Equal(owned, ownedAgain), "the partitions it had before")
	_, rebalancesSince := stays.Partitions().counts()
	Require(rebalancesSince == rebalances, "no rebalance for the other member")
	party.ends()
}

func cooperative(client Client) {
	party := newParty(client, 4)
	first := party.joins("", true)
	party.settles()
	party.sends(40)
	party.readsAll()
	party.joins("", true)
	party.settles()
	lost, _ := first.Partitions().counts()
	Require(lost == 2, "two partitions revoked, not %d", lost)
	party.sends(40)
	party.readsAll()
	party.ends()
}

func restart(client Client) {
	party := newParty(client, 1)
	party.commits(40)
	party.sends(40)
	clear(party.seen)
	party.joins("", false)
	party.until(func() bool { return party.seen["record 79"] > 0 }, "the records after the committed offset")
	for _, value := range numbered(40, 40) {
		Require(party.seen[value] == 1 && len(party.seen) == 40, "just the records after the committed offset")
	}
	party.ends()
}

func seek(client Client) {
	topic := NewName("seek")
	client.CreateTopic(topic, 1)
	client.Produce(topic, 0, numbered(0, records), "none", time.Time{})
	for _, start := range []int{150, 0, 77} {
		found := client.Read(topic, int64(start), 20)
		Require(slices.Equal(valuesOf(found), numbered(start, 20)), "records from %d", start)
		Require(found[0].Offset == int64(start) && found[19].Offset == int64(start)+19, "offsets from %d", start)
	}
}

func times(client Client) {
	topic := NewName("times")
	client.CreateTopic(topic, 1)
	client.Produce(topic, 0, numbered(0, 20), "none", firstTimestamp)
	for _, each := range []struct{ afterMs, offset int64 }{{-5000, 0}, {0, 0}, {1, 1}, {7000, 7}, {18_001, 19}, {19_001, -1}} {
		found := client.OffsetForTime(topic, firstTimestamp.Add(time.Duration(each.afterMs)*time.Millisecond))
		Require(found == each.offset, "offset %d for the time %d ms after the first, not %d", each.offset, each.afterMs, found)
	}
}

// commits has the group commit in partition 0, and end.
func (p *party) commits(count int) {
	p.joins("", false)
	p.sends(count)
	p.readsAll()
	p.ends()
}

func admin(client Client) {
	party := newParty(client, 1)
	party.commits(20)
	var made, failed []string
	for _, call := range client.AdminCalls(party.topic, party.group) {
		made = append(made, call.Name)
		if reason := panicOf(call.Make); reason != nil {
			failed = append(failed, fmt.Sprintf("%s (%v)", call.Name, reason))
		}
	}
	Require(len(failed) == 0, "%s", strings.Join(failed, "; "))
	fmt.Println(strings.Join(made, ", "))
}

func panicOf(call func()) (reason any) {
	defer func() { reason = recover() }()
	call()
	return nil
}

func lag(client Client) {
	party := newParty(client, 1)
	party.commits(20)
	party.sends(15)
	found := client.Lag(party.group, party.topic)
	Require(found == 15, "a lag of 15, not %d", found)
}
