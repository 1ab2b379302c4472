/** The limits of what the server starts itself: providers, mail and the PostgreSQL sink; a part of `limits`. */
export const outboundLimits = {
  /** How long one request to a provider may take, milliseconds. */
  oauthRequestMs: 5_000,
  /** How far a provider's clock may be ahead when it issues an ID token, milliseconds. */
  oauthClockAheadMs: 300_000,
  /** Bytes of one answer of a provider. */
  oauthAnswerBytesMax: 262_144,
  /** Sign-ins that wait for one provider at once. */
  oauthWaitingMax: 256,
  /** How long the discovery document of a provider is cached, milliseconds. */
  oauthDiscoveryMs: 3_600_000,
  /** Mails that are read from the outbox at once. */
  mailBatchMax: 32,
  /** Tries of one mail, after which it is given up. */
  mailAttemptsMax: 20,
  /** Pause after the first failed try of a mail; each further one doubles it, milliseconds. */
  mailRetryBaseMs: 5_000,
  /** The longest pause between two tries of a mail, milliseconds. */
  mailRetryMaxMs: 900_000,
  /** How long the mail server may take to accept a connection, to greet, or to answer one command, milliseconds. */
  mailSilenceMs: 15_000,
  /** How long sending one mail may take in all, milliseconds. */
  mailSendMs: 60_000,
  /** How long sending the current mail may still take when the server stops, milliseconds. */
  mailStopMs: 3_000,
  /** Milliseconds between searches of the outbox for mails whose next try is due. */
  mailPollMs: 5_000,
  /** Rows after which the PostgreSQL sink adds no further block to a batch. */
  sinkBatchRows: 2_048,
  /** Bytes of bodies after which it adds no further block to a batch. */
  sinkBatchBytes: 4_194_304,
  /**
   * Blocks that the sink searches at once, and after which it saves its place even if they contained nothing for it.
   */
  sinkScanBlocks: 1_024,
  /** Milliseconds between the sink's searches for new blocks. */
  sinkPollMs: 200,
  /** Pause of the sink after the first failure; each further one in a row doubles it, milliseconds. */
  sinkRetryBaseMs: 250,
  /** The longest pause of the sink between two tries, milliseconds. */
  sinkRetryMaxMs: 30_000,
  /** How long PostgreSQL may take to accept a connection, milliseconds. */
  sinkConnectMs: 10_000,
  /** How long PostgreSQL may work on one statement of the sink, waits for locks included, milliseconds. */
  sinkStatementMs: 60_000,
  /** How long PostgreSQL may be silent on a statement before the connection is given up, milliseconds. */
  sinkSilenceMs: 75_000,
  /** How long the current batch may still take when the server stops, milliseconds. */
  sinkStopMs: 1_000,
  /** Failures of one batch, while the connection works, after which its rows are tried one by one. */
  sinkBatchTriesMax: 3,
  /** Bytes, and rows, of one answer of PostgreSQL: more than any statement asks for. */
  postgresAnswerBytesMax: 33_554_432,
  postgresAnswerRowsMax: 16_384,
  /** Characters of what PostgreSQL says went wrong that are logged. */
  postgresTroubleCharsMax: 500,
  /** How long a server of the cluster's database may take to accept a connection, milliseconds. */
  clusterConnectMs: 3_000,
  /**
   * How often a server of the cluster's database looks whether the node still waits for what it does, milliseconds: what
   * was given up would wait for a standby with the connection of each try otherwise.
   */
  clusterLookMs: 5_000,
  /** Connections by which a node that starts sees whether a pooler lends its sessions out. */
  clusterSessionsExamined: 4,
  /** Nodes of a cluster that are alive, and rows of nodes that are read at once, dead ones among them. */
  clusterNodesMax: 112,
  clusterNodeRowsMax: 256,
  /** Characters of a node's name, or of its address, in its row, and of what it says of itself there. */
  clusterNameCharsMax: 2_048,
  clusterAboutCharsMax: 16_384,
  /** How long an append may take until nothing is known of it, milliseconds. */
  clusterAppendMs: 10_000,
  /** How long a connection may do nothing between two statements of a transaction until the database ends it, milliseconds. */
  clusterIdleMs: 2_000,
  /** How long a read of segments may take, milliseconds: less than their thread may be silent. */
  clusterReadMs: 20_000,
  /**
   * Rows of segments that are read at once, and the bytes of them behind which no further one is: many small ones, so that
   * who is far from the database reads faster than others write.
   */
  clusterReadRows: 1_024,
  clusterReadBytes: 4_194_304,
  /** Bytes of bodies, and of sealed rows, in a row of a segment: CockroachDB warns above. */
  clusterPartBytes: 1_048_576,
  /** Bytes of sealed rows since the last checkpoint below which none is made for their number. */
  clusterCheckpointBytesMin: 8_388_608,
  /** How often a checkpoint is made where rows were removed, milliseconds. */
  clusterCheckpointMs: 86_400_000,
  /** Pause after a checkpoint that failed, milliseconds. */
  clusterCheckpointRetryMs: 600_000,
  /** Segments whose rows are forgotten at once. */
  clusterForgetSegments: 2_048,
  /** How often the thread of the log tells its figures, milliseconds. */
  clusterFiguresMs: 1_000,
  /** Bytes of one message between two nodes: what a shard may be sent in one turn. */
  linkMessageBytesMax: 268_435_456,
  /** Bytes that may wait for another node to read them. */
  linkUnsentBytesMax: 268_435_456,
  /** Bytes of an answer to a read from which others overtake it on a link. */
  linkLateBytesMin: 4_096,
  /** Bytes of one piece of such an answer, and of pieces that the other node has not read: other messages wait for no more than these. */
  linkPieceBytes: 32_768,
  linkPiecesBytes: 262_144,
  /** Bytes that are read of a link until the other node is told so at once. */
  linkReadSaidBytes: 65_536,
  /** Bytes of such answers that wait for a link, in all and for one principal; beyond that it is answered 503. */
  linkAnswerBytesMax: 268_435_456,
  linkAnswerBytesPerPrincipalMax: 33_554_432,
  /** How long another node may take to be reached, and to say who it is, milliseconds. */
  linkHandshakeMs: 3_000,
  /** Connections of other nodes at once. */
  linksMax: 128,
  /** Pause between two questions whether the other end of a link is there, milliseconds. */
  linkPingMs: 200,
  /** How long a node may answer for another one without hearing of it, milliseconds; half a lease at most. */
  linkLeaseMs: 1_000,
  /**
   * How long a node waits to hear of the owner until it ends its link, milliseconds: where that owner hears it all the same, it
   * waits for what it told, and everybody for that. Longer than it may answer without.
   */
  linkSilenceMs: 2_000,
  /** Other nodes that a front tries to reach at once. */
  linkTriesMax: 16,
  /** Pause between two tries to reach another node, milliseconds. */
  linkRetryMs: 200,
  /** Pause of a node that stands by between two looks at the ends of all logs, milliseconds. */
  clusterFollowMs: 200,
  /** How long what was read of a log may wait in memory until the store has it, milliseconds: each commit takes as much, however little it is. */
  clusterSettleMs: 2_000,
  /** How long the store of a shard that other nodes hold is left where it is, milliseconds: nodes that restart need theirs again. */
  clusterStoreLeftMs: 3_600_000,
  /** Threads of a node that have begun and wait for a shard: as many as it can open at once. */
  clusterSpareThreads: 2,
  /** How long a node that is stopped waits until the next owner serves a shard before it gives another one up, milliseconds. */
  clusterMoveMs: 1_000,
  /** Pause after a shard could not be opened, milliseconds. */
  clusterOpenPauseMs: 1_000,
  /** Pause between two tries to open a shard that its owner is about to give up, milliseconds. */
  clusterHeldMs: 100,
  /** How long the thread of the log may be silent on what a shard waits for, milliseconds. */
  clusterSilenceMs: 30_000,
  /** The shortest pause before an append is sent again, milliseconds. */
  clusterRetryMinMs: 5,
  /** The longest one, milliseconds. */
  clusterRetryMaxMs: 100,
  /** Rows of nodes that do not verify and are named, and characters of a name that are shown; the others are counted. */
  clusterFaultsNamed: 5,
  clusterNodeNameShown: 64,
  /** Connections that race in `strandfast cluster check`. */
  clusterCheckConnections: 8,
  /** Segments, and keys, that they race for. */
  clusterCheckSegments: 30,
  /** Appends that it cuts the connection of. */
  clusterCheckCuts: 30,
  /** How long one of its checks may take, seconds. */
  clusterCheckSecs: 60,
} as const
