// Package scenarios has what an application does with Kafka, over any client: the features, names and statuses of
// compat/scenarios.py.
package scenarios

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// Patience bounds everything that is waited for.
const Patience = 30 * time.Second

// Turn is how long a member waits for records.
const Turn = 100 * time.Millisecond

// Record is a record as it was read.
type Record struct {
	Offset int64
	Value  string
}

// Member is a consumer in a group.
type Member interface {
	// Poll gives what has come, after at most one Turn.
	Poll() []Record
	// Commit commits the position after the last record that was polled, unless a rebalance is in its way.
	Commit()
	// Close leaves the group (a static member only goes away).
	Close()
	// Partitions tells what the member has and had.
	Partitions() *Partitions
}

// Call is an admin call that panics when it doesn't do what it should.
type Call struct {
	Name string
	Make func()
}

// Client is what the scenarios ask of a client. All of it panics where it fails.
type Client interface {
	CreateTopic(topic string, partitions int)
	// Produce sends all with acks=all and waits for the answers; timestamps a second apart, unless the first is zero.
	Produce(topic string, partition int, values []string, codec string, first time.Time)
	// NewMember reads from the earliest offset and doesn't commit on its own while it runs.
	NewMember(group, topic, instance string, isCooperative bool) Member
	// Read seeks to start in partition 0, when already reading elsewhere, and reads.
	Read(topic string, start int64, count int) []Record
	// OffsetForTime is the first offset of partition 0 at or after the time; -1 when there is none.
	OffsetForTime(topic string, at time.Time) int64
	// Lag is the end offset of partition 0 less what the group has committed, by admin calls.
	Lag(group, topic string) int64
	// AdminCalls are to be made in this order; the topic has one partition with records, the group a committed offset
	// and no members.
	AdminCalls(topic, group string) []Call
}

// Missing is the panic of what the broker didn't do.
type Missing string

// NotInClient is the panic of what the client hasn't.
type NotInClient string

// Require panics with Missing, unless it holds.
func Require(holds bool, format string, values ...any) {
	if !holds {
		panic(Missing(fmt.Sprintf(format, values...)))
	}
}

// Must panics with the error, if there is one.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Got panics with the error, if there is one, and else is the value.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// NewName is a name that no other run uses.
func NewName(prefix string) string {
	random := make([]byte, 6)
	Got(rand.Read(random))
	return prefix + "-" + hex.EncodeToString(random)
}

// Partitions are those of one topic that a member has now, and those that were ever taken from it.
type Partitions struct {
	mutex      sync.Mutex
	owned      map[int32]bool
	lost       map[int32]bool
	rebalances int
}

// Gains is to be called when the client tells of partitions that it got.
func (p *Partitions) Gains(partitions []int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.owned == nil {
		p.owned, p.lost = map[int32]bool{}, map[int32]bool{}
	}
	for _, each := range partitions {
		p.owned[each] = true
	}
	p.rebalances++
}

// Loses is to be called when the client tells of partitions that were taken from it.
func (p *Partitions) Loses(partitions []int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, each := range partitions {
		delete(p.owned, each)
		p.lost[each] = true
	}
}

// Owned are the partitions now.
func (p *Partitions) Owned() []int32 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var owned []int32
	for each := range p.owned {
		owned = append(owned, each)
	}
	return owned
}

func (p *Partitions) counts() (lost, rebalances int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.lost), p.rebalances
}
