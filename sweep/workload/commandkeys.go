package workload

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A finding is where the keys of a recorded command are.
type finding struct {
	keys []int // indexes of arguments, rising
	skip bool  // it must not be replayed
	ask  bool  // only the server can tell
}

// findKeys finds the keys of each command. It asks the server what it knows of
// the commands and, where that is not enough, for the keys of each single one.
// A server without COMMAND, or with a rule against it, is no hindrance: then
// the usual commands are known here.
func findKeys(ctx context.Context, db redis.UniversalClient, all *commands) ([]finding, error) {
	known, err := commandTable(ctx, db, all)
	if err != nil {
		return nil, err
	}
	out := make([]finding, all.len())
	var ask []int
	for i := range out {
		out[i] = known.find(all.args(i))
		if out[i].ask {
			ask = append(ask, i)
		}
	}
	for some := range slices.Chunk(ask, batch) {
		if err := askKeys(ctx, db, all, some, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A commandInfo is what a server says of a command, see
// https://redis.io/docs/latest/commands/command/.
type commandInfo struct {
	arity             int // number of arguments with the name, negative: at least; 0: unknown
	flags             []string
	first, last, step int
	parts             map[string]commandInfo // subcommands by "name|subcommand"
}

func (c commandInfo) is(flag string) bool { return slices.Contains(c.flags, flag) }

// A table is what is known of commands, by name in lower case.
type table map[string]commandInfo

// commandTable asks for all commands that the recording names.
func commandTable(ctx context.Context, db redis.UniversalClient, all *commands) (table, error) {
	names := make(map[string]bool)
	for i := range all.len() {
		names[strings.ToLower(all.args(i)[0])] = true
	}
	list := make([]any, 0, len(names))
	for n := range names {
		list = append(list, n)
	}
	known := make(table)
	for some := range slices.Chunk(list, batch) {
		reply, err := db.Do(ctx, append([]any{"COMMAND", "INFO"}, some...)...).Slice()
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			return usual(), nil
		case err != nil:
			return nil, err
		}
		for _, r := range reply {
			if name, info, ok := parseInfo(r); ok {
				known[name] = info
			}
		}
	}
	return known, nil
}

// parseInfo reads an element of the reply to COMMAND INFO; it is a null for a
// command that the server does not have.
func parseInfo(v any) (name string, info commandInfo, ok bool) {
	f, _ := v.([]any)
	if len(f) < 6 {
		return "", info, false
	}
	name, _ = f[0].(string)
	flags, _ := f[2].([]any)
	for _, x := range flags {
		if s, ok := x.(string); ok {
			info.flags = append(info.flags, s)
		}
	}
	for i, into := range map[int]*int{1: &info.arity, 3: &info.first, 4: &info.last, 5: &info.step} {
		n, _ := f[i].(int64)
		*into = int(n)
	}
	if len(f) > 9 { // since Redis 7
		parts, _ := f[9].([]any)
		for _, p := range parts {
			if sub, i, ok := parseInfo(p); ok {
				if info.parts == nil {
					info.parts = make(map[string]commandInfo)
				}
				info.parts[sub] = i
			}
		}
	}
	return strings.ToLower(name), info, name != ""
}

// keyless are commands without a key that may be replayed, beside those that
// only read.
var keyless = []string{"ping", "echo", "time"}

// find tells what to do with a command.
func (t table) find(args []string) finding {
	name := strings.ToLower(args[0])
	info, ok := t[name]
	if len(info.parts) > 0 && len(args) > 1 {
		info, ok = info.parts[name+"|"+strings.ToLower(args[1])]
	}
	n := len(args)
	switch {
	case !ok, info.arity > 0 && n != info.arity, n < -info.arity:
		return finding{skip: true}
	case !replayable(name, info, args):
		return finding{skip: true}
	}
	keys, found := movableKeys(name, args)
	switch {
	case found:
	case info.is("movablekeys"):
		return finding{ask: true}
	case info.first > 0:
		last := info.last
		if last < 0 {
			last += n
		}
		for i := info.first; i <= last && i < n; i += max(1, info.step) {
			keys = append(keys, i)
		}
	}
	if len(keys) == 0 && !info.is("readonly") && !slices.Contains(keyless, name) {
		return finding{skip: true}
	}
	return finding{keys: keys}
}

// replayable reports whether a command leaves alone what is not its keys.
func replayable(name string, info commandInfo, args []string) bool {
	has := func(word string) bool {
		return slices.ContainsFunc(args[1:], func(a string) bool { return strings.EqualFold(a, word) })
	}
	switch name {
	case "watch", "move", "migrate":
		return false
	case "blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop":
		return false // before Redis 7 nothing said that they block
	case "copy":
		return !has("DB") // to another database
	case "xread", "xreadgroup":
		return !has("BLOCK")
	}
	return !info.is("admin") && !info.is("pubsub") && !info.is("blocking")
}

// movableKeys finds the keys of the usual commands whose keys have no fixed
// place. COMMAND GETKEYS knows them, too, but not where they stand, and the
// number of keys or the text of a script may look like one.
func movableKeys(name string, args []string) (keys []int, known bool) {
	switch name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
		return counted(args, 2), true
	case "zunionstore", "zinterstore", "zdiffstore":
		return append([]int{1}, counted(args, 2)...), true
	case "zunion", "zinter", "zdiff", "zintercard", "sintercard", "lmpop", "zmpop":
		return counted(args, 1), true
	case "xread", "xreadgroup":
		i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "STREAMS") })
		for j := i + 1; i > 0 && j < i+1+(len(args)-i-1)/2; j++ {
			keys = append(keys, j)
		}
		return keys, true
	case "sort", "sort_ro":
		return stored(args, "STORE"), true
	case "georadius", "georadiusbymember":
		return stored(args, "STORE", "STOREDIST"), true
	}
	return nil, false
}

// counted returns the places of the keys whose number stands at a place.
func counted(args []string, at int) (keys []int) {
	if at >= len(args) {
		return nil
	}
	n, err := strconv.Atoi(args[at])
	if err != nil || n < 0 || n > len(args)-at-1 {
		return nil
	}
	for i := range n {
		keys = append(keys, at+1+i)
	}
	return keys
}

// stored returns the place of the first argument and of those that follow one
// of the words.
func stored(args []string, words ...string) []int {
	keys := []int{1}
	for i := 2; i < len(args)-1; i++ {
		if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, args[i]) }) {
			keys = append(keys, i+1)
			i++
		}
	}
	return keys
}

// askKeys asks the server for the keys of some commands. The answer has names,
// not places: a command in which a name stands more often than the server
// tells is skipped, as another argument must not be changed.
func askKeys(ctx context.Context, db redis.UniversalClient, all *commands, some []int, out []finding) error {
	pipe := db.Pipeline()
	replies := make([]*redis.Cmd, len(some))
	for j, i := range some {
		do := []any{"COMMAND", "GETKEYS"}
		for _, a := range all.args(i) {
			do = append(do, a)
		}
		replies[j] = pipe.Do(ctx, do...)
	}
	_, err := pipe.Exec(ctx)
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	for j, i := range some {
		names, err := replies[j].StringSlice()
		if err != nil || len(names) == 0 {
			out[i] = finding{skip: true} // it has no key
			continue
		}
		out[i] = placesOf(names, all.args(i))
	}
	return nil
}

func placesOf(names, args []string) finding {
	var f finding
	for i, a := range args {
		if i > 0 && slices.Contains(names, a) {
			f.keys = append(f.keys, i)
		}
	}
	if len(f.keys) != len(names) {
		return finding{skip: true}
	}
	return f
}

// usual is what is known of the usual commands without a server.
func usual() table {
	t := make(table)
	for _, group := range []struct {
		info  commandInfo
		names string
	}{
		{commandInfo{flags: []string{"readonly"}, first: 1, last: 1, step: 1},
			"get strlen getrange substr getbit bitcount bitpos ttl pttl type dump expiretime pexpiretime " +
				"hget hmget hgetall hkeys hvals hlen hexists hstrlen hrandfield hscan " +
				"llen lindex lrange lpos scard sismember smismember smembers srandmember sscan " +
				"zcard zcount zlexcount zmscore zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank zscore zrandmember zscan " +
				"xlen xrange xrevrange xpending geodist geohash geopos geosearch sort_ro"},
		{commandInfo{flags: []string{"readonly"}, first: 1, last: -1, step: 1}, "mget exists touch sdiff sinter sunion pfcount"},
		{commandInfo{flags: []string{"readonly"}, first: 2, last: 2, step: 1}, "object xinfo"},
		{commandInfo{flags: []string{"readonly"}}, "keys scan randomkey dbsize zunion zinter zdiff zintercard sintercard xread eval_ro evalsha_ro fcall_ro"},
		{commandInfo{flags: []string{"write"}, first: 1, last: 1, step: 1},
			"set setnx setex psetex append setrange setbit getset getdel getex incr decr incrby decrby incrbyfloat bitfield " +
				"expire pexpire expireat pexpireat persist restore " +
				"hset hmset hsetnx hdel hincrby hincrbyfloat lpush lpushx rpush rpushx lpop rpop linsert lset lrem ltrim " +
				"sadd srem spop zadd zincrby zrem zremrangebylex zremrangebyrank zremrangebyscore zpopmin zpopmax " +
				"xadd xdel xtrim xack xclaim xautoclaim xsetid pfadd geoadd sort georadius georadiusbymember zunionstore zinterstore zdiffstore"},
		{commandInfo{flags: []string{"write"}, first: 1, last: -1, step: 1}, "del unlink sdiffstore sinterstore sunionstore pfmerge"},
		{commandInfo{flags: []string{"write"}, first: 1, last: -1, step: 2}, "mset msetnx"},
		{commandInfo{flags: []string{"write"}, first: 1, last: 2, step: 1}, "rename renamenx copy smove rpoplpush lmove zrangestore geosearchstore"},
		{commandInfo{flags: []string{"write"}, first: 2, last: -1, step: 1}, "bitop"},
		{commandInfo{flags: []string{"write"}, first: 2, last: 2, step: 1}, "xgroup"},
		{commandInfo{flags: []string{"write"}}, "eval evalsha fcall lmpop zmpop xreadgroup"},
		{commandInfo{}, "ping echo time"},
	} {
		for _, n := range strings.Fields(group.names) {
			t[n] = group.info
		}
	}
	return t
}
