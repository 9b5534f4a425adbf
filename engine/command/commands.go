package command

// command is a row of the table.
type command struct {
	name    string
	aliases []string
	// run does it; nil is todo: MongoDB has the command, and we do not yet.
	run func(c *call) error
	// write: it takes a writeConcern. read: it takes a readConcern.
	write, read bool
	// admin: only on the database admin.
	admin bool
	// stable: it is in the stable API's version 1, so that apiStrict allows it.
	stable bool
	// legacy: OP_QUERY may bring it.
	legacy bool
	// waits: maxTimeMS is no limit, but how long to wait for data.
	waits bool
	// counts: it counts itself in serverStatus's opcounters; the others are counted as command.
	counts bool
}

// commands is the table, by name.
var commands = []command{
	{name: "aggregate", run: aggregate, write: true, read: true, stable: true},
	{name: "analyze", write: true},
	{name: "authenticate", stable: true},
	{name: "buildInfo", aliases: []string{"buildinfo"}, run: buildInfo},
	{name: "bulkWrite", run: bulkWrite, counts: true, write: true, stable: true, admin: true},
	{name: "collMod", run: collMod, write: true, stable: true},
	{name: "collStats", aliases: []string{"collstats"}, run: collStats, read: true},
	{name: "compact", run: compact},
	{name: "connectionStatus", run: connectionStatus},
	{name: "convertToCapped", run: convertToCapped, write: true},
	{name: "count", run: count, read: true, stable: true},
	{name: "create", run: create, write: true, stable: true},
	{name: "createIndexes", run: createIndexes, write: true, stable: true},
	{name: "createRole", write: true},
	{name: "createUser", write: true},
	{name: "currentOp", run: currentOp, admin: true},
	{name: "dataSize", run: dataSize},
	{name: "dbHash"},
	{name: "dbStats", aliases: []string{"dbstats"}, run: dbStats, read: true},
	{name: "delete", run: remove, write: true, stable: true, counts: true},
	{name: "distinct", run: distinct, read: true},
	{name: "drop", run: drop, write: true, stable: true},
	{name: "dropAllRolesFromDatabase", write: true},
	{name: "dropAllUsersFromDatabase", write: true},
	{name: "dropDatabase", run: dropDatabase, write: true, stable: true},
	{name: "dropIndexes", aliases: []string{"deleteIndexes"}, run: dropIndexes, write: true, stable: true},
	{name: "dropRole", write: true},
	{name: "dropUser", write: true},
	{name: "endSessions", run: endSessions, stable: true},
	{name: "explain", run: explain, read: true, stable: true},
	{name: "features", run: features},
	{name: "filemd5"},
	{name: "find", run: find, read: true, stable: true, counts: true},
	{name: "findAndModify", aliases: []string{"findandmodify"}, run: findAndModify, write: true, stable: true},
	{name: "fsync", admin: true},
	{name: "fsyncUnlock", admin: true},
	{name: "getCmdLineOpts", run: getCmdLineOpts, admin: true},
	{name: "getDefaultRWConcern", admin: true},
	{name: "getLog", run: getLog, admin: true},
	{name: "getMore", run: getMore, stable: true, counts: true, waits: true},
	{name: "getParameter", run: getParameter, admin: true},
	{name: "grantRolesToUser", write: true},
	{name: "hello", run: hello, stable: true, legacy: true},
	{name: "hostInfo", run: hostInfo, admin: true},
	{name: "insert", run: insert, write: true, stable: true, counts: true},
	{name: "isMaster", aliases: []string{"ismaster"}, run: hello, legacy: true},
	{name: "killAllSessions", run: killAllSessions},
	{name: "killAllSessionsByPattern"},
	{name: "killCursors", run: killCursors, stable: true},
	{name: "killOp", run: killOp, admin: true},
	{name: "killSessions", run: killSessions},
	{name: "listCollections", run: listCollections, stable: true},
	{name: "listCommands", run: listCommands},
	{name: "listDatabases", run: listDatabases, admin: true, stable: true},
	{name: "listIndexes", run: listIndexes, stable: true},
	{name: "lockInfo", admin: true},
	{name: "logRotate", admin: true},
	{name: "logout", run: logout},
	{name: "mapReduce", aliases: []string{"mapreduce"}},
	{name: "ping", run: ping, stable: true},
	{name: "planCacheClear"},
	{name: "profile"},
	{name: "reIndex"},
	{name: "refreshSessions", run: refreshSessions, stable: true},
	{name: "renameCollection", run: renameCollection, write: true, admin: true},
	{name: "replSetGetStatus", run: replSetGetStatus, admin: true},
	{name: "revokeRolesFromUser", write: true},
	{name: "rolesInfo"},
	{name: "rotateCertificates", admin: true},
	{name: "saslContinue", stable: true},
	{name: "saslStart", stable: true},
	{name: "serverStatus", run: serverStatus},
	{name: "setDefaultRWConcern", admin: true, write: true},
	{name: "setFeatureCompatibilityVersion", admin: true, write: true},
	{name: "setParameter", admin: true},
	{name: "shutdown", admin: true},
	{name: "startSession", run: startSession},
	{name: "top", admin: true},
	{name: "update", run: update, write: true, stable: true, counts: true},
	{name: "updateRole", write: true},
	{name: "updateUser", write: true},
	{name: "usersInfo"},
	{name: "validate", run: validate},
	{name: "validateDBMetadata"},
	{name: "whatsmyuri", run: whatsmyuri},
}
