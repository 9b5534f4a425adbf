package mongoerr

// The codes, as MongoDB numbers and names them. A code without a name of its own is a Location: use Code(31249).Errorf, or one
// of the constants below.
const (
	InternalError                             Code = 1
	BadValue                                  Code = 2
	NoSuchKey                                 Code = 4
	GraphContainsCycle                        Code = 5
	UnknownError                              Code = 8
	FailedToParse                             Code = 9
	CannotMutateObject                        Code = 10
	UserNotFound                              Code = 11
	UnsupportedFormat                         Code = 12
	Unauthorized                              Code = 13
	TypeMismatch                              Code = 14
	Overflow                                  Code = 15
	InvalidLength                             Code = 16
	ProtocolError                             Code = 17
	AuthenticationFailed                      Code = 18
	IllegalOperation                          Code = 20
	EmptyArrayOperation                       Code = 21
	InvalidBSON                               Code = 22
	LockTimeout                               Code = 24
	NamespaceNotFound                         Code = 26
	IndexNotFound                             Code = 27
	PathNotViable                             Code = 28
	NonExistentPath                           Code = 29
	InvalidPath                               Code = 30
	RoleNotFound                              Code = 31
	CannotBackfillArray                       Code = 34
	ConflictingUpdateOperators                Code = 40
	CursorNotFound                            Code = 43
	LockBusy                                  Code = 46
	NoMatchingDocument                        Code = 47
	NamespaceExists                           Code = 48
	MaxTimeMSExpired                          Code = 50
	DollarPrefixedFieldName                   Code = 52
	InvalidIDField                            Code = 53
	NotSingleValueField                       Code = 54
	InvalidDBRef                              Code = 55
	EmptyFieldName                            Code = 56
	DottedFieldName                           Code = 57
	CommandNotFound                           Code = 59
	WriteConcernTimeout                       Code = 64
	MultipleErrorsOccurred                    Code = 65
	ImmutableField                            Code = 66
	CannotCreateIndex                         Code = 67
	IndexAlreadyExists                        Code = 68
	InvalidOptions                            Code = 72
	InvalidNamespace                          Code = 73
	NoReplicationEnabled                      Code = 76
	UnknownReplWriteConcern                   Code = 79
	IndexOptionsConflict                      Code = 85
	IndexKeySpecsConflict                     Code = 86
	NetworkTimeout                            Code = 89
	ShutdownInProgress                        Code = 91
	OperationFailed                           Code = 96
	NoProjectionFound                         Code = 97
	DBPathInUse                               Code = 98
	UnsatisfiableWriteConcern                 Code = 100
	OutdatedClient                            Code = 101
	NotExactValueField                        Code = 111
	WriteConflict                             Code = 112
	CommandNotSupported                       Code = 115
	DocTooLargeForCapped                      Code = 116
	ConflictingOperationInProgress            Code = 117
	DocumentValidationFailure                 Code = 121
	NotAReplicaSet                            Code = 123
	CommandFailed                             Code = 125
	CappedPositionLost                        Code = 136
	JSInterpreterFailure                      Code = 139
	CursorInUse                               Code = 143
	ExceededMemoryLimit                       Code = 146
	ReadConcernMajorityNotEnabled             Code = 148
	OplogOutOfOrder                           Code = 152
	MustUpgrade                               Code = 158
	DurationOverflow                          Code = 159
	ViewDepthLimitExceeded                    Code = 165
	CommandNotSupportedOnView                 Code = 166
	OptionNotSupportedOnView                  Code = 167
	InvalidPipelineOperator                   Code = 168
	TooManyMatchingDocuments                  Code = 170
	CannotIndexParallelArrays                 Code = 171
	QueryPlanKilled                           Code = 175
	FileOpenFailed                            Code = 176
	AmbiguousIndexKeyPattern                  Code = 181
	InvalidViewDefinition                     Code = 182
	ClientMetadataCannotBeMutated             Code = 186
	LinearizableReadConcernError              Code = 187
	InvalidIndexSpecificationOption           Code = 197
	CannotBuildIndexKeys                      Code = 201
	NoSuchSession                             Code = 206
	InvalidUUID                               Code = 207
	KeyNotFound                               Code = 211
	DatabaseDropPending                       Code = 215
	IncompleteTransactionHistory              Code = 217
	UpdateOperationFailed                     Code = 218
	IndexModified                             Code = 221
	IllegalOpMsgFlag                          Code = 223
	QueryFeatureNotAllowed                    Code = 224
	TransactionTooOld                         Code = 225
	AtomicityFailure                          Code = 226
	CannotImplicitlyCreateCollection          Code = 227
	MaxSubPipelineDepthExceeded               Code = 232
	TooManyDocumentSequences                  Code = 233
	CursorKilled                              Code = 237
	NotImplemented                            Code = 238
	SnapshotTooOld                            Code = 239
	ConversionFailure                         Code = 241
	CannotCreateCollection                    Code = 242
	SnapshotUnavailable                       Code = 246
	NoSuchTransaction                         Code = 251
	TransactionCommitted                      Code = 256
	TransactionTooLarge                       Code = 257
	InvalidResumeToken                        Code = 260
	TooManyLogicalSessions                    Code = 261
	ExceededTimeLimit                         Code = 262
	OperationNotSupportedInTransaction        Code = 263
	TooManyFilesOpen                          Code = 264
	IndexBuildAborted                         Code = 276
	ClientDisconnect                          Code = 279
	ChangeStreamFatalError                    Code = 280
	ChangeStreamHistoryLost                   Code = 286
	TransactionExceededLifetimeLimitSeconds   Code = 290
	NoQueryExecutionPlans                     Code = 291
	QueryExceededMemoryLimitNoDiskUseAllowed  Code = 292
	ObjectIsBusy                              Code = 314
	APIVersionError                           Code = 322
	APIStrictError                            Code = 323
	UnsupportedOpQueryCommand                 Code = 352
	CannotConvertIndexToUnique                Code = 359
	CollectionUUIDMismatch                    Code = 361
	ReauthenticationRequired                  Code = 391
	SocketException                           Code = 9001
	NotWritablePrimary                        Code = 10107
	BSONObjectTooLarge                        Code = 10334
	DuplicateKey                              Code = 11000
	InterruptedAtShutdown                     Code = 11600
	Interrupted                               Code = 11601
	InterruptedDueToReplStateChange           Code = 11602
	BackgroundOperationInProgressForDatabase  Code = 12586
	BackgroundOperationInProgressForNamespace Code = 12587
	DatabaseDifferCase                        Code = 13297
	NotPrimaryNoSecondaryOk                   Code = 13435
	OutOfDiskSpace                            Code = 14031
	ClientMarkedKilled                        Code = 46841
)

// Locations that clients and specification tests look at.
const (
	LocationFieldPathEmpty       Code = 40352 // "FieldPath cannot be constructed with empty string"
	LocationFieldPathTrailingDot Code = 40353 // "FieldPath must not end with a '.'."
	LocationFieldPathDollar      Code = 16410 // "FieldPath field names may not start with '$'."
	LocationFieldNameEmpty       Code = 15998 // "FieldPath field names may not be empty strings."
	LocationPipelineStageUnknown Code = 40324 // "Unrecognized pipeline stage name"
	LocationPipelineStageForm    Code = 40323 // "A pipeline stage specification object must contain exactly one field."
	LocationCommandFieldUnknown  Code = 40415 // "BSON field 'x' is an unknown field."
	LocationCommandFieldMissing  Code = 40414 // "BSON field 'x' is missing but a required field"
	LocationCommandFieldTwice    Code = 40413 // "BSON field 'x' is a duplicate field"
	LocationRegexInvalid         Code = 51091 // a pattern that does not compile
	LocationRegexOptionsTwice    Code = 51075 // options both in the regex and in $options
	LocationValueNegative        Code = 51024 // "BSON field 'x' value must be >= 0"
	LocationProjectExclusionIn   Code = 31254 // an exclusion inside an inclusion projection
	LocationProjectInclusionIn   Code = 31253 // an inclusion inside an exclusion projection
	LocationProjectPathCollision Code = 31250 // "Path collision at x"
	LocationProjectPathRemaining Code = 31249 // "Path collision at x remaining portion y"
	LocationProjectPositional    Code = 51246 // "positional projection 'x.$' doesn't match the query document"
	LocationExpressionUnknown    Code = 31325 // an unknown $expression in a projection
	LocationSortOrder            Code = 15975 // "$sort key ordering must be 1 (for ascending) or -1 (for descending)"
	LocationTransformedTooLarge  Code = 17419 // "Resulting document after update is larger than 16777216"
	LocationUpsertTooLarge       Code = 17420 // the same of a document that an upsert would insert
)

var names = map[Code]string{
	InternalError:                             "InternalError",
	BadValue:                                  "BadValue",
	NoSuchKey:                                 "NoSuchKey",
	GraphContainsCycle:                        "GraphContainsCycle",
	UnknownError:                              "UnknownError",
	FailedToParse:                             "FailedToParse",
	CannotMutateObject:                        "CannotMutateObject",
	UserNotFound:                              "UserNotFound",
	UnsupportedFormat:                         "UnsupportedFormat",
	Unauthorized:                              "Unauthorized",
	TypeMismatch:                              "TypeMismatch",
	Overflow:                                  "Overflow",
	InvalidLength:                             "InvalidLength",
	ProtocolError:                             "ProtocolError",
	AuthenticationFailed:                      "AuthenticationFailed",
	IllegalOperation:                          "IllegalOperation",
	EmptyArrayOperation:                       "EmptyArrayOperation",
	InvalidBSON:                               "InvalidBSON",
	LockTimeout:                               "LockTimeout",
	NamespaceNotFound:                         "NamespaceNotFound",
	IndexNotFound:                             "IndexNotFound",
	PathNotViable:                             "PathNotViable",
	NonExistentPath:                           "NonExistentPath",
	InvalidPath:                               "InvalidPath",
	RoleNotFound:                              "RoleNotFound",
	CannotBackfillArray:                       "CannotBackfillArray",
	ConflictingUpdateOperators:                "ConflictingUpdateOperators",
	CursorNotFound:                            "CursorNotFound",
	LockBusy:                                  "LockBusy",
	NoMatchingDocument:                        "NoMatchingDocument",
	NamespaceExists:                           "NamespaceExists",
	MaxTimeMSExpired:                          "MaxTimeMSExpired",
	DollarPrefixedFieldName:                   "DollarPrefixedFieldName",
	InvalidIDField:                            "InvalidIdField",
	NotSingleValueField:                       "NotSingleValueField",
	InvalidDBRef:                              "InvalidDBRef",
	EmptyFieldName:                            "EmptyFieldName",
	DottedFieldName:                           "DottedFieldName",
	CommandNotFound:                           "CommandNotFound",
	WriteConcernTimeout:                       "WriteConcernTimeout",
	MultipleErrorsOccurred:                    "MultipleErrorsOccurred",
	ImmutableField:                            "ImmutableField",
	CannotConvertIndexToUnique:                "CannotConvertIndexToUnique",
	CannotCreateIndex:                         "CannotCreateIndex",
	IndexAlreadyExists:                        "IndexAlreadyExists",
	InvalidOptions:                            "InvalidOptions",
	InvalidNamespace:                          "InvalidNamespace",
	NoReplicationEnabled:                      "NoReplicationEnabled",
	UnknownReplWriteConcern:                   "UnknownReplWriteConcern",
	IndexOptionsConflict:                      "IndexOptionsConflict",
	IndexKeySpecsConflict:                     "IndexKeySpecsConflict",
	NetworkTimeout:                            "NetworkTimeout",
	ShutdownInProgress:                        "ShutdownInProgress",
	OperationFailed:                           "OperationFailed",
	NoProjectionFound:                         "NoProjectionFound",
	DBPathInUse:                               "DBPathInUse",
	UnsatisfiableWriteConcern:                 "UnsatisfiableWriteConcern",
	OutdatedClient:                            "OutdatedClient",
	NotExactValueField:                        "NotExactValueField",
	WriteConflict:                             "WriteConflict",
	CommandNotSupported:                       "CommandNotSupported",
	DocTooLargeForCapped:                      "DocTooLargeForCapped",
	ConflictingOperationInProgress:            "ConflictingOperationInProgress",
	DocumentValidationFailure:                 "DocumentValidationFailure",
	NotAReplicaSet:                            "NotAReplicaSet",
	CommandFailed:                             "CommandFailed",
	CappedPositionLost:                        "CappedPositionLost",
	JSInterpreterFailure:                      "JSInterpreterFailure",
	CursorInUse:                               "CursorInUse",
	ExceededMemoryLimit:                       "ExceededMemoryLimit",
	ReadConcernMajorityNotEnabled:             "ReadConcernMajorityNotEnabled",
	OplogOutOfOrder:                           "OplogOutOfOrder",
	MustUpgrade:                               "MustUpgrade",
	DurationOverflow:                          "DurationOverflow",
	ViewDepthLimitExceeded:                    "ViewDepthLimitExceeded",
	CommandNotSupportedOnView:                 "CommandNotSupportedOnView",
	OptionNotSupportedOnView:                  "OptionNotSupportedOnView",
	InvalidPipelineOperator:                   "InvalidPipelineOperator",
	TooManyMatchingDocuments:                  "TooManyMatchingDocuments",
	CannotIndexParallelArrays:                 "CannotIndexParallelArrays",
	QueryPlanKilled:                           "QueryPlanKilled",
	FileOpenFailed:                            "FileOpenFailed",
	AmbiguousIndexKeyPattern:                  "AmbiguousIndexKeyPattern",
	InvalidViewDefinition:                     "InvalidViewDefinition",
	ClientMetadataCannotBeMutated:             "ClientMetadataCannotBeMutated",
	LinearizableReadConcernError:              "LinearizableReadConcernError",
	InvalidIndexSpecificationOption:           "InvalidIndexSpecificationOption",
	CannotBuildIndexKeys:                      "CannotBuildIndexKeys",
	NoSuchSession:                             "NoSuchSession",
	InvalidUUID:                               "InvalidUUID",
	KeyNotFound:                               "KeyNotFound",
	DatabaseDropPending:                       "DatabaseDropPending",
	IncompleteTransactionHistory:              "IncompleteTransactionHistory",
	UpdateOperationFailed:                     "UpdateOperationFailed",
	IndexModified:                             "IndexModified",
	IllegalOpMsgFlag:                          "IllegalOpMsgFlag",
	QueryFeatureNotAllowed:                    "QueryFeatureNotAllowed",
	TransactionTooOld:                         "TransactionTooOld",
	AtomicityFailure:                          "AtomicityFailure",
	CannotImplicitlyCreateCollection:          "CannotImplicitlyCreateCollection",
	MaxSubPipelineDepthExceeded:               "MaxSubPipelineDepthExceeded",
	TooManyDocumentSequences:                  "TooManyDocumentSequences",
	CursorKilled:                              "CursorKilled",
	NotImplemented:                            "NotImplemented",
	SnapshotTooOld:                            "SnapshotTooOld",
	ConversionFailure:                         "ConversionFailure",
	CannotCreateCollection:                    "CannotCreateCollection",
	SnapshotUnavailable:                       "SnapshotUnavailable",
	NoSuchTransaction:                         "NoSuchTransaction",
	TransactionCommitted:                      "TransactionCommitted",
	TransactionTooLarge:                       "TransactionTooLarge",
	InvalidResumeToken:                        "InvalidResumeToken",
	TooManyLogicalSessions:                    "TooManyLogicalSessions",
	ExceededTimeLimit:                         "ExceededTimeLimit",
	OperationNotSupportedInTransaction:        "OperationNotSupportedInTransaction",
	TooManyFilesOpen:                          "TooManyFilesOpen",
	IndexBuildAborted:                         "IndexBuildAborted",
	ClientDisconnect:                          "ClientDisconnect",
	ChangeStreamFatalError:                    "ChangeStreamFatalError",
	ChangeStreamHistoryLost:                   "ChangeStreamHistoryLost",
	TransactionExceededLifetimeLimitSeconds:   "TransactionExceededLifetimeLimitSeconds",
	NoQueryExecutionPlans:                     "NoQueryExecutionPlans",
	QueryExceededMemoryLimitNoDiskUseAllowed:  "QueryExceededMemoryLimitNoDiskUseAllowed",
	ObjectIsBusy:                              "ObjectIsBusy",
	APIVersionError:                           "APIVersionError",
	APIStrictError:                            "APIStrictError",
	UnsupportedOpQueryCommand:                 "UnsupportedOpQueryCommand",
	CollectionUUIDMismatch:                    "CollectionUUIDMismatch",
	ReauthenticationRequired:                  "ReauthenticationRequired",
	SocketException:                           "SocketException",
	NotWritablePrimary:                        "NotWritablePrimary",
	BSONObjectTooLarge:                        "BSONObjectTooLarge",
	DuplicateKey:                              "DuplicateKey",
	InterruptedAtShutdown:                     "InterruptedAtShutdown",
	Interrupted:                               "Interrupted",
	InterruptedDueToReplStateChange:           "InterruptedDueToReplStateChange",
	BackgroundOperationInProgressForDatabase:  "BackgroundOperationInProgressForDatabase",
	BackgroundOperationInProgressForNamespace: "BackgroundOperationInProgressForNamespace",
	DatabaseDifferCase:                        "DatabaseDifferCase",
	NotPrimaryNoSecondaryOk:                   "NotPrimaryNoSecondaryOk",
	OutOfDiskSpace:                            "OutOfDiskSpace",
	ClientMarkedKilled:                        "ClientMarkedKilled",
}
