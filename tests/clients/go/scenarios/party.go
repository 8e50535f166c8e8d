package scenarios

import (
	"fmt"
	"slices"
	"time"
)

// party is the members of one group, polled in turns, and all that they have read.
type party struct {
	client       Client
	topic, group string
	partitions   int
	members      []Member
	seen         map[string]int
	sent         int
}

func newParty(client Client, partitions int) *party {
	p := &party{client: client, topic: NewName("topic"), group: NewName("group"), partitions: partitions, seen: map[string]int{}}
	client.CreateTopic(p.topic, partitions)
	return p
}

func (p *party) joins(instance string, isCooperative bool) Member {
	member := p.client.NewMember(p.group, p.topic, instance, isCooperative)
	p.members = append(p.members, member)
	return member
}

func (p *party) leaves(member Member) {
	p.members = slices.DeleteFunc(p.members, func(each Member) bool { return each == member })
	member.Close()
}

func (p *party) turn() {
	for _, member := range p.members {
		records := member.Poll()
		for _, record := range records {
			p.seen[record.Value]++
		}
		if len(records) > 0 {
			member.Commit()
		}
	}
}

// until turns until the condition holds.
func (p *party) until(holds func() bool, what string) {
	deadline := time.Now().Add(Patience)
	for !holds() {
		Require(time.Now().Before(deadline), "not within %v: %s", Patience, what)
		p.turn()
	}
}

// isSharedOut tells whether each partition has one owner, and each member at least one partition.
func (p *party) isSharedOut() bool {
	var owned []int32
	for _, member := range p.members {
		its := member.Partitions().Owned()
		if len(its) == 0 {
			return false
		}
		owned = append(owned, its...)
	}
	slices.Sort(owned)
	return len(owned) == p.partitions && len(slices.Compact(owned)) == p.partitions
}

func (p *party) settles() {
	p.until(p.isSharedOut, fmt.Sprintf("each partition with one of %d members", len(p.members)))
}

func (p *party) sends(count int) {
	for partition := range p.partitions {
		var values []string
		for number := p.sent + partition; number < p.sent+count; number += p.partitions {
			values = append(values, fmt.Sprintf("record %d", number))
		}
		p.client.Produce(p.topic, partition, values, "none", time.Time{})
	}
	p.sent += count
}

func (p *party) readsAll() {
	p.until(func() bool { return len(p.seen) >= p.sent }, fmt.Sprintf("all %d records", p.sent))
	for _, value := range numbered(0, p.sent) {
		Require(p.seen[value] > 0, "records that were never sent")
	}
}

func (p *party) ends() {
	for len(p.members) > 0 {
		p.leaves(p.members[len(p.members)-1])
	}
}
