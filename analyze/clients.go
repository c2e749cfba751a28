package analyze

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ClientNames returns the names that Snippet knows, by language.
func ClientNames() []string {
	names := make([]string, len(clientLibraries))
	for i, l := range clientLibraries {
		names[i] = l.name
	}
	return names
}

// Snippet returns the settings of r for the client library with that name, as
// code to paste, with the library's own default beside each setting. The name
// "all" gives those of every library, with an empty line between them.
//
// A library that pools gets the pool of one process. One that sends the
// requests of many callers over one connection gets a number of connections,
// and the reason why it is not the pool's. One connection for each process, as
// with PHP, makes the pool of an instance its number of processes.
//
// The error of an unknown name lists those that are known. There is nothing to
// set, and so an error, when r has no pool.
func Snippet(name string, r Recommendation) (string, error) {
	if r.PerProcess == 0 {
		return "", fmt.Errorf("client settings: no pool is recommended: %s", r.Reason)
	}
	var all []string
	for _, l := range clientLibraries {
		if name == l.name {
			return l.snippet(r), nil
		}
		all = append(all, l.snippet(r))
	}
	if name == "all" {
		return strings.Join(all, "\n"), nil
	}
	return "", fmt.Errorf("client settings: unknown client %q: known are %s and all", name, strings.Join(ClientNames(), ", "))
}

// A clientLibrary is one entry of the table of settings. Its texts may hold the
// placeholders of placeholders.
type clientLibrary struct {
	name    string
	title   string // with the version whose names and defaults these are, where they changed
	comment string // what begins a comment in its language
	model   clientModel
	notes   []string // what else must be known, above the code

	before   string // code up to the settings
	settings []setting
	after    string // code after them
}

// A setting is a line of code and the library's default for it.
type setting struct{ code, standard string }

type clientModel int

const (
	pooled      clientModel = iota // a request has a connection to itself until its reply
	multiplexed                    // requests of many callers share a connection
	forked                         // a process serves one request at a time, over its one connection
)

const (
	// perConnection is the number of requests in flight up to which one
	// multiplexed connection is advised. Our choice, and a rule of thumb: so
	// many fit into a write and a read each, and what is gained by a
	// connection more is that another thread of the client parses replies.
	perConnection = 32

	// maxConnections is the most multiplexed connections that are advised for
	// a process; rueidis opens as many by default.
	maxConnections = 4

	commentWidth = 96 // columns
)

// connections returns how many multiplexed connections a process opens: 1, 2
// or 4.
func connections(r Recommendation) int {
	n := 1
	for n < maxConnections && n*perConnection < r.PerProcess {
		n *= 2
	}
	return n
}

// placeholders returns what fills in the values of r.
func placeholders(r Recommendation) *strings.Replacer {
	n := connections(r)
	exponent := n / 2 // of 2; rueidis takes 0 for "default"
	if exponent == 0 {
		exponent = -1
	}
	wait := int(math.Round(r.WaitTimeout * 1000))
	nodes := max(r.Nodes, 1) // the zero value has none
	return strings.NewReplacer(
		"{pool}", strconv.Itoa(r.PerProcess/nodes),
		"{instance}", strconv.Itoa(r.PerInstance),
		"{idle}", strconv.Itoa((r.MinIdle+nodes-1)/nodes),
		"{wait ms}", strconv.Itoa(wait),
		"{wait s}", strconv.FormatFloat(float64(wait)/1000, 'f', -1, 64),
		"{connections}", strconv.Itoa(n),
		"{exponent}", strconv.Itoa(exponent),
	)
}

// snippet renders the entry: comments, then code with the defaults in one
// column, as gofmt has them.
func (l clientLibrary) snippet(r Recommendation) string {
	fill := placeholders(r).Replace
	var b strings.Builder
	l.writeComment(&b, l.title+": "+l.sizing(r))
	for _, note := range l.notes {
		l.writeComment(&b, fill(note))
	}
	b.WriteString(fill(l.before))
	width := 0
	for _, s := range l.settings {
		width = max(width, utf8.RuneCountInString(fill(s.code)))
	}
	if l.comment == "#" {
		width++ // Python wants two spaces, others do not mind
	}
	for _, s := range l.settings {
		fmt.Fprintf(&b, "%-*s %s %s\n", width, fill(s.code), l.comment, s.standard)
	}
	b.WriteString(fill(l.after))
	return b.String()
}

// sizing says what the numbers of a snippet rest on.
func (l clientLibrary) sizing(r Recommendation) string {
	inAll := ""
	if r.Pool > r.PerProcess {
		inAll = fmt.Sprintf(", %d in all", r.Pool)
	}
	pool := count(r.PerProcess, "connection") + " for each process" + inAll
	if r.Nodes > 1 {
		pool = fmt.Sprintf("%s for each process to each of %d nodes%s", count(r.PerNode, "connection"), r.Nodes, inAll)
	}
	const apart = "Blocking commands (BLPOP, XREAD BLOCK) and pub/sub need connections of their own on top."
	switch l.model {
	case multiplexed:
		return fmt.Sprintf("%s for each process, shared by all callers, whose requests are pipelined. So the pool that was "+
			"found (%s, one request at a time each) does not apply: what counts is how many requests are in flight, for "+
			"which see the sweep over pipeline depths. One connection does for some %d in flight; more help where several "+
			"threads of the client read and write. %s", count(connections(r), "connection"), pool, perConnection, apart)
	case forked:
		return fmt.Sprintf("%s for each instance, with one connection each%s. %s", processes(r.PerInstance), inAll, apart)
	default:
		return pool + ". " + apart
	}
}

// processes is count for a noun with another plural.
func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// writeComment writes text as lines of comment.
func (l clientLibrary) writeComment(b *strings.Builder, text string) {
	line := l.comment
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line+" "+word) > commentWidth {
			b.WriteString(line + "\n")
			line = l.comment
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// noLifetime and noIdle are notes for libraries without such a setting.
const (
	noLifetime = "There is no setting for the lifetime of a connection: while it works, it follows no change of DNS."
	noIdle     = "There is no setting for a minimum of idle connections: they are opened when first needed."
)

// clientLibraries is the table, by language. Names and defaults are those of
// the libraries' sources and manuals at the end of 2025 and later; a lifetime
// of 30 minutes, where none is the default, is that of r2d2 and bb8.
var clientLibraries = []clientLibrary{
	{
		name: "go-redis", title: "go-redis v9, as of v9.23", comment: "//",
		notes: []string{"In a cluster these count for each node."},
		before: `rdb := redis.NewClient(&redis.Options{
	Addr: "localhost:6379",

`,
		settings: []setting{
			{"	PoolSize:              {pool},", "default 10 * runtime.GOMAXPROCS(0); alone it is no cap"},
			{"	MaxActiveConns:        {pool},", "default 0, no limit; the cap"},
			{"	MinIdleConns:          {idle},", "default 0"},
			{"	PoolTimeout:           {wait ms} * time.Millisecond,", "default ReadTimeout + 1 s, so 6 s"},
			{"	ConnMaxIdleTime:       30 * time.Minute,", "default 30 min; keep it below the server's timeout"},
			{"	ConnMaxLifetime:       30 * time.Minute,", "default 0, for ever"},
			{"	ConnMaxLifetimeJitter: 3 * time.Minute,", "default 0: all would reconnect at once"},
			{"	PipelinePoolSize:      -1,", "default 10 more connections, for pipelines; -1: they use the pool"},
		},
		after: "})\n",
	},
	{
		name: "rueidis", title: "rueidis", comment: "//", model: multiplexed,
		before: `client, err := rueidis.NewClient(rueidis.ClientOption{
	InitAddress: []string{"localhost:6379"},

`,
		settings: []setting{
			{"	PipelineMultiplex:   {exponent},", "default 2: 2^2 = 4 connections, in a cluster 1 a node; -1 is 1"},
			{"	BlockingPoolSize:    {pool},", "default 1024; opened for blocking and Dedicated commands only"},
			{"	BlockingPoolCleanup: 30 * time.Minute,", "default 0: idle ones stay for ever"},
			{"	BlockingPoolMinSize: 0,", "default 0; how many idle ones stay"},
			{"	ConnLifetime:        30 * time.Minute,", "default 0, for ever"},
		},
		after: "})\n",
	},
	{
		name: "redigo", title: "redigo", comment: "//",
		notes: []string{noIdle},
		before: `pool := &redis.Pool{
	Dial: func() (redis.Conn, error) { return redis.Dial("tcp", "localhost:6379") },

`,
		settings: []setting{
			{"	MaxActive:       {pool},", "default 0, no limit"},
			{"	MaxIdle:         {pool},", "default 0: a connection is closed after each use"},
			{"	Wait:            true,", "default false: ErrPoolExhausted at once"},
			{"	IdleTimeout:     30 * time.Minute,", "default 0, for ever"},
			{"	MaxConnLifetime: 30 * time.Minute,", "default 0, for ever"},
		},
		after: `}

// The longest wait is the context's; Get without one waits for ever.
ctx, cancel := context.WithTimeout(context.Background(), {wait ms}*time.Millisecond)
defer cancel()
conn, err := pool.GetContext(ctx)
`,
	},
	{
		name: "jedis", title: "Jedis", comment: "//",
		notes: []string{noLifetime},
		before: `ConnectionPoolConfig config = new ConnectionPoolConfig();
`,
		settings: []setting{
			{"config.setMaxTotal({pool});", "default 8"},
			{"config.setMaxIdle({pool});", "default 8; if less than maxTotal, connections are closed and opened all the time"},
			{"config.setMinIdle({idle});", "default 0"},
			{"config.setBlockWhenExhausted(true);", "default true"},
			{"config.setMaxWait(Duration.ofMillis({wait ms}));", "default -1 ms, for ever"},
			{"config.setMinEvictableIdleTime(Duration.ofSeconds(60));", "default of Jedis 60 s"},
			{"config.setTimeBetweenEvictionRuns(Duration.ofSeconds(30));", "default of Jedis 30 s; keeps minIdle filled"},
		},
		after: `JedisPooled jedis = new JedisPooled(config, "localhost", 6379);
`,
	},
	{
		name: "lettuce", title: "Lettuce", comment: "//", model: multiplexed,
		notes: []string{"Transactions and blocking commands hold a connection: for these, ConnectionPoolSupport with a " +
			"GenericObjectPoolConfig (default maxTotal 8, maxIdle 8, minIdle 0)."},
		before: `RedisClient client = RedisClient.create("redis://localhost:6379");
`,
		settings: []setting{{"int connections = {connections};", "default 1: one connection that all threads share"}},
		after: `List<StatefulRedisConnection<String, String>> shared =
    Stream.generate(() -> client.connect()).limit(connections).toList();
`,
	},
	{
		name: "spring", title: "Spring Boot 3 (spring.redis.* before) with Jedis and commons-pool2", comment: "#",
		notes: []string{"With Lettuce, Spring's default client, ordinary commands share one connection, and a pool under lettuce: " +
			"serves transactions and blocking commands only; see the settings of lettuce.", noLifetime},
		before: `spring:
  data:
    redis:
      client-type: jedis
      jedis:
        pool:
`,
		settings: []setting{
			{"          enabled: true", "default: when commons-pool2 is on the class path"},
			{"          max-active: {pool}", "default 8"},
			{"          max-idle: {pool}", "default 8"},
			{"          min-idle: {idle}", "default 0"},
			{"          max-wait: {wait ms}ms", "default -1ms, for ever"},
			{"          time-between-eviction-runs: 30s", "default unset; min-idle needs it"},
		},
	},
	{
		name: "redisson", title: "Redisson", comment: "//",
		notes: []string{"There is no setting for the wait alone; pub/sub has a pool of its own, by default of 50."},
		before: `Config config = new Config();
config.useSingleServer()
    .setAddress("redis://localhost:6379")
`,
		settings: []setting{
			{"    .setConnectionPoolSize({pool})", "default 64"},
			{"    .setConnectionMinimumIdleSize({idle})", "default 24; must not be above the pool size"},
			{"    .setSubscriptionConnectionPoolSize(50)", "default 50"},
			{"    .setSubscriptionConnectionMinimumIdleSize(1);", "default 1"},
		},
		after: `RedissonClient redisson = Redisson.create(config);
`,
	},
	{
		name: "redis-py", title: "redis-py", comment: "#",
		notes: []string{noIdle, noLifetime},
		before: `pool = redis.BlockingConnectionPool(
    host="localhost",
    port=6379,
`,
		settings: []setting{
			{"    max_connections={pool},", "default 50; that of ConnectionPool is 2**31, beyond which it raises"},
			{"    timeout={wait s},", "default 20 s"},
		},
		after: `)
r = redis.Redis(connection_pool=pool)
`,
	},
	{
		name: "glide", title: "Valkey GLIDE (Python; other languages in camelCase)", comment: "#", model: multiplexed,
		before: `config = GlideClientConfiguration(
    [NodeAddress("localhost", 6379)],
`,
		settings: []setting{
			{"    request_timeout={wait ms},", "default 250 ms"},
			{"    inflight_requests_limit=1000,", "default 1000 a connection; what exceeds it is refused"},
		},
		after: `)
clients = [await GlideClient.create(config) for _ in range({connections})]
`,
	},
	{
		name: "node-redis", title: "node-redis v5", comment: "//",
		notes: []string{"A plain createClient() is one connection on which all requests are pipelined, and often enough. " + noLifetime},
		before: `const pool = createClientPool({ url: "redis://localhost:6379" }, {
`,
		settings: []setting{
			{"  minimum: {idle},", "default 1"},
			{"  maximum: {pool},", "default 100"},
			{"  acquireTimeout: {wait ms},", "default 3000 ms"},
			{"  cleanupDelay: 3000,", "default 3000 ms"},
		},
		after: `});
pool.on("error", (err) => console.error("redis pool", err));
await pool.connect();
`,
	},
	{
		name: "ioredis", title: "ioredis", comment: "//", model: multiplexed,
		notes: []string{"ioredis has no pool."},
		before: `const clients = Array.from({ length: {connections} }, () => new Redis({
  host: "localhost",
  port: 6379,
`,
		settings: []setting{
			{"  enableAutoPipelining: true,", "default false; one write for all commands of a turn of the event loop"},
			{"  maxRetriesPerRequest: 20,", "default 20"},
		},
		after: "}));\n",
	},
	{
		name: "stackexchange", title: "StackExchange.Redis", comment: "//", model: multiplexed,
		notes: []string{"It has no pool; that of StackExchange.Redis.Extensions is its PoolSize."},
		settings: []setting{
			{"const int connections = {connections};", "default 1: a multiplexer, normally 2 sockets (one for subscriptions)"},
		},
		after: `var multiplexers = await Task.WhenAll(Enumerable.Range(0, connections)
    .Select(_ => ConnectionMultiplexer.ConnectAsync("localhost:6379")));
`,
	},
	{
		name: "redis-plus-plus", title: "redis-plus-plus", comment: "//",
		notes: []string{noIdle},
		before: `sw::redis::ConnectionOptions connection;
connection.host = "localhost";
connection.port = 6379;

sw::redis::ConnectionPoolOptions pool;
`,
		settings: []setting{
			{"pool.size = {pool};", "default 1"},
			{"pool.wait_timeout = std::chrono::milliseconds({wait ms});", "default 0, for ever"},
			{"pool.connection_lifetime = std::chrono::minutes(30);", "default 0, for ever"},
		},
		after: `
sw::redis::Redis redis(connection, pool);
`,
	},
	{
		name: "r2d2", title: "r2d2 with redis-rs (feature r2d2)", comment: "//",
		before: `let client = redis::Client::open("redis://localhost:6379")?;
let pool = r2d2::Pool::builder()
`,
		settings: []setting{
			{"    .max_size({pool})", "default 10"},
			{"    .min_idle(Some({idle}))", "default None, which is max_size"},
			{"    .connection_timeout(Duration::from_millis({wait ms}))", "default 30 s"},
			{"    .idle_timeout(Some(Duration::from_secs(10 * 60)))", "default 10 min"},
			{"    .max_lifetime(Some(Duration::from_secs(30 * 60)))", "default 30 min"},
		},
		after: "    .build(client)?;\n",
	},
	{
		name: "bb8", title: "bb8-redis", comment: "//",
		notes: []string{multiplexedRust},
		before: `let manager = bb8_redis::RedisConnectionManager::new("redis://localhost:6379")?;
let pool = bb8::Pool::builder()
`,
		settings: []setting{
			{"    .max_size({pool})", "default 10"},
			{"    .min_idle(Some({idle}))", "default None"},
			{"    .connection_timeout(Duration::from_millis({wait ms}))", "default 30 s"},
			{"    .max_lifetime(Some(Duration::from_secs(30 * 60)))", "default 30 min"},
		},
		after: "    .build(manager)\n    .await?;\n",
	},
	{
		name: "deadpool", title: "deadpool-redis", comment: "//",
		notes: []string{multiplexedRust, noIdle, noLifetime},
		before: `let mut config = deadpool_redis::Config::from_url("redis://localhost:6379");
config.pool = Some(deadpool_redis::PoolConfig {
`,
		settings: []setting{
			{"    max_size: {pool},", "default 2 for each core (up to deadpool 0.12.1, 4)"},
			{"    timeouts: deadpool_redis::Timeouts::wait_millis({wait ms}),", "default none, for ever"},
			{"    ..Default::default()", "queue: Fifo"},
		},
		after: `});
let pool = config.create_pool(Some(deadpool_redis::Runtime::Tokio1))?;
`,
	},
	{
		name: "php-fpm", title: "php-fpm with phpredis", comment: ";", model: forked,
		notes: []string{"pm.max_children also bounds the requests that PHP serves at once, most of which do not use Redis all the time: " +
			"take it as the most that Redis needs, not as what the site needs. A script connects with " +
			"$redis->pconnect('localhost', 6379)."},
		before: "; www.conf:\n",
		settings: []setting{
			{"pm.max_children = {instance}", "default 5 in the file that comes with php-fpm"},
		},
		after: `; php.ini:
redis.pconnect.pooling_enabled = 1  ; default 1: a child keeps its connection
redis.pconnect.connection_limit = 0 ; default 0, no limit; a child uses one at a time
`,
	},
	{
		name: "ruby", title: "connection_pool with redis-rb", comment: "#",
		notes: []string{"With redis-client alone: RedisClient.config(url: \"redis://localhost:6379\").new_pool(size: {pool}, timeout: {wait s}), " +
			"whose timeout is 1.0 s by default.", noIdle},
		before: "REDIS = ConnectionPool.new(\n",
		settings: []setting{
			{"  size: {pool},", "default 5"},
			{"  timeout: {wait s},", "default 5 s"},
		},
		after: ") { Redis.new(url: \"redis://localhost:6379\") }\n",
	},
}

// multiplexedRust is a note for pools of async Rust.
const multiplexedRust = "redis-rs itself can multiplex instead: a ConnectionManager is one connection for all tasks."
