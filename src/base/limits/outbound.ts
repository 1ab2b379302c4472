/**
 * Limits of outbound connections: providers, mail, the PostgreSQL sink, and the database and links of a
 * cluster.
 */
export const outboundLimits = {
  /** How long one request to a provider may take, milliseconds. */
  oauthRequestMs: 5_000,
  /** How far a provider's clock may differ: the tolerance for each time of an ID token, seconds. */
  oauthClockSkewSecs: 300,
  /** Bytes of one response of a provider. */
  oauthAnswerBytesMax: 262_144,
  /** Sign-ins that wait for one provider. */
  oauthWaitingMax: 256,
  /** How long the discovery document of a provider is cached, milliseconds. */
  oauthDiscoveryMs: 3_600_000,
  /** Mails in one read of the outbox. */
  mailBatchMax: 32,
  /** Attempts to send one mail, after which it is dropped. */
  mailAttemptsMax: 20,
  /** Pause after the first failed attempt to send a mail, milliseconds; each further one doubles it. */
  mailRetryBaseMs: 5_000,
  /** The longest pause between two attempts to send a mail, milliseconds. */
  mailRetryMaxMs: 900_000,
  /**
   * How long the mail server may take to accept a connection, to greet, or to answer one command,
   * milliseconds.
   */
  mailReplyMs: 15_000,
  /** How long sending one mail may take in all, milliseconds. */
  mailSendMs: 60_000,
  /** How long sending the current mail may still take when the server stops, milliseconds. */
  mailStopMs: 3_000,
  /** Milliseconds between searches of the outbox for mails that are due. */
  mailPollMs: 5_000,
  /** Rows after which the PostgreSQL sink adds no further block to a batch. */
  sinkBatchRows: 2_048,
  /** Bytes of bodies after which the sink adds no further block to a batch. */
  sinkBatchBytes: 4_194_304,
  /** Blocks in one search of the sink, after which it saves its position even if no block matched. */
  sinkScanBlocks: 1_024,
  /** Milliseconds between two searches of the sink for new blocks. */
  sinkPollMs: 200,
  /** Pause of the sink after the first failure, milliseconds; each further one in a row doubles it. */
  sinkRetryBaseMs: 250,
  /** The longest pause of the sink between two attempts, milliseconds. */
  sinkRetryMaxMs: 30_000,
  /** How long PostgreSQL may take to accept a connection, milliseconds. */
  sinkConnectMs: 10_000,
  /** How long PostgreSQL may work on one statement of the sink, including waits for locks, milliseconds. */
  sinkStatementMs: 60_000,
  /**
   * How long PostgreSQL may take to answer a statement before the sink closes the connection, milliseconds.
   */
  sinkReplyMs: 75_000,
  /** How long the current batch may still take when the server stops, milliseconds. */
  sinkStopMs: 1_000,
  /** Failures of one batch on a working connection, after which its rows are written in smaller parts. */
  sinkBatchTriesMax: 3,
  /** Bytes and rows of one result of PostgreSQL: more than any statement selects. */
  postgresAnswerBytesMax: 33_554_432,
  postgresAnswerRowsMax: 16_384,
  /**
   * Milliseconds after which an idle connection to PostgreSQL sends keep-alive packets. A firewall or NAT
   * forgets idle connections after 30 seconds or more.
   */
  postgresKeepAliveMs: 10_000,
  /** How long a connection may be idle before it is checked for an answer, milliseconds. */
  postgresIdleMs: 5_000,
  /** How long this answer may take, milliseconds. */
  postgresLookMs: 1_000,
  /** Characters of an error message of PostgreSQL that are logged. */
  postgresErrorCharsMax: 500,
  /** How long a server of the cluster database may take to accept a connection, milliseconds. */
  clusterConnectMs: 3_000,
  /**
   * Milliseconds between checks of the cluster database whether its client is still connected. Without it, an
   * abandoned statement that waits for a synchronous standby would occupy its connection.
   */
  clusterClientCheckMs: 5_000,
  /** Connections with which a starting node detects a pooler that shares sessions. */
  clusterPoolerProbes: 4,
  /** How long a heartbeat may take at least before it is sent on another connection, milliseconds. */
  clusterHeartbeatMsMin: 1_000,
  /**
   * Differences between the clock of a node and the database's, milliseconds: from the first, the node warns;
   * beyond the second, it owns no shards. The second is far below `clockAheadMsMax`, so that records of one
   * node never delay those of the next.
   */
  clusterClockWarnMs: 1_000,
  clusterClockMs: 10_000,
  /** Live nodes of a cluster, and rows of live and dead nodes in one read. */
  clusterNodesMax: 112,
  clusterNodeRowsMax: 256,
  /** Characters of the name or address of a node in its row, and of its report there. */
  clusterNameCharsMax: 2_048,
  clusterReportCharsMax: 16_384,
  /** How long an append may take before its outcome counts as unknown, milliseconds. */
  clusterAppendMs: 10_000,
  /**
   * How long an append waits for its answer before it is sent on a second connection as well, milliseconds.
   */
  clusterSecondTryMs: 2_000,
  /** How long a connection may be idle in a transaction before the database ends it, milliseconds. */
  clusterIdleMs: 2_000,
  /** How long a read of segments may take, milliseconds; shorter than `clusterStallMs`. */
  clusterReadMs: 20_000,
  /**
   * Rows of segments in one read, and bytes after which the read ends. Many small rows fit, so that a node
   * far from the database reads faster than other nodes write.
   */
  clusterReadRows: 1_024,
  clusterReadBytes: 4_194_304,
  /** Bytes of bodies, and of sealed rows, in a row of a segment: CockroachDB warns about larger ones. */
  clusterPartBytes: 1_048_576,
  /** Bytes of sealed rows since the last checkpoint below which their number causes no new one. */
  clusterCheckpointBytesMin: 8_388_608,
  /** Milliseconds after which a checkpoint is made if rows were removed. */
  clusterCheckpointMs: 86_400_000,
  /**
   * How long segments keep their sealed rows after a checkpoint that contains them, milliseconds: a follower
   * that has not read them by then builds its store again.
   */
  clusterRemovalDelayMs: 60_000,
  /** Pause after a failed checkpoint or removal of sealed rows, milliseconds. */
  clusterCheckpointRetryMs: 600_000,
  /** Segments whose rows are deleted in one statement. */
  clusterDeleteSegments: 2_048,
  /** Milliseconds between two reports of metrics by the log thread. */
  clusterMetricsMs: 1_000,
  /** Bytes of one message between two nodes, which is all that a shard is sent in one turn. */
  linkMessageBytesMax: 268_435_456,
  /** Bytes that another node has not read yet. */
  linkUnsentBytesMax: 268_435_456,
  /** Bytes from which an answer to a read is split on a link, so that other messages can overtake it. */
  linkSplitBytesMin: 4_096,
  /**
   * Bytes of one piece of a split answer, and of unread pieces: other messages wait for no more than these.
   */
  linkPieceBytes: 32_768,
  linkPiecesBytes: 262_144,
  /** Bytes read from a link after which they are acknowledged immediately. */
  linkReadAckBytes: 65_536,
  /**
   * Bytes of split answers that wait for a link, in all and for one principal; beyond that, requests are
   * answered 503.
   */
  linkAnswerBytesMax: 268_435_456,
  linkAnswerBytesPerPrincipalMax: 33_554_432,
  /** How long the connection and the handshake with another node may take, milliseconds. */
  linkHandshakeMs: 3_000,
  /** Open connections of other nodes. */
  linksMax: 128,
  /** Milliseconds between two pings on a link. */
  linkPingMs: 200,
  /** How long a node may answer for an owner after its last heartbeat, milliseconds; half a lease at most. */
  linkLeaseMs: 1_000,
  /**
   * How long after the last heartbeat of the owner a node closes the link, milliseconds; longer than
   * `linkLeaseMs`. If only one direction of a link fails, the owner would otherwise wait for the
   * acknowledgements of this node.
   */
  linkTimeoutMs: 2_000,
  /** Other nodes to which a front connects at the same time. */
  linkTriesMax: 16,
  /** Pause between two attempts to connect to another node, milliseconds. */
  linkRetryMs: 200,
  /** Milliseconds between two reads of all log heads by a standby node. */
  clusterFollowMs: 200,
  /**
   * How long rows from a log may wait in memory for a commit to the store, milliseconds: small commits cost
   * as much as large ones.
   */
  clusterFlushAgeMs: 2_000,
  /**
   * How long a node keeps the store of a shard that other nodes hold, milliseconds: a restarted node needs it
   * again.
   */
  clusterStaleStoreMs: 3_600_000,
  /** Started threads of a node that wait for a shard: as many as the node can open at the same time. */
  clusterSpareThreads: 2,
  /**
   * How long a stopping node waits for the next owner to serve a shard before it transfers another one,
   * milliseconds.
   */
  clusterMoveMs: 1_000,
  /** Pause after a shard failed to open, milliseconds. */
  clusterOpenPauseMs: 1_000,
  /** Pause between two attempts to open a shard that its owner is about to release, milliseconds. */
  clusterHeldRetryMs: 100,
  /** How long a shard waits for a sign of progress of the log thread, milliseconds. */
  clusterStallMs: 30_000,
  /** The shortest pause before an append is sent again, milliseconds. */
  clusterRetryMinMs: 5,
  /** The longest pause before an append is sent again, milliseconds. */
  clusterRetryMaxMs: 100,
  /**
   * Invalid rows of nodes that are named, while further ones are counted, and characters of a name that are
   * shown.
   */
  clusterFaultsNamed: 5,
  clusterNodeNameShown: 64,
  /** Concurrent connections of `strandfast cluster check`. */
  clusterCheckConnections: 8,
  /** Segments, and keys, for which these connections compete. */
  clusterCheckSegments: 30,
  /** Appends whose connection the check cuts. */
  clusterCheckCuts: 30,
  /** How long one part of the check may take, seconds. */
  clusterCheckSecs: 60,
} as const
