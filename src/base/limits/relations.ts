import { assert } from '../assert.js'

/** Limits that depend on each other: [the smaller or equal limit, the larger one, why]. */
const relations = [
  ['linkPieceBytes', 'linkPiecesBytes', 'several principals have pieces in flight'],
  ['linkReadAckBytes', 'linkPiecesBytes', 'reads are acknowledged before all pieces are unread'],
  ['pageBytesMax', 'linkAnswerBytesPerPrincipalMax', 'a principal can be sent a whole page over a link'],
  ['linkAnswerBytesPerPrincipalMax', 'linkAnswerBytesMax', 'one principal has its share of a link'],
  ['clusterClockWarnMs', 'clusterClockMs', 'a clock is named before its node owns no shards'],
  ['clusterClockMs', 'clockAheadMsMax', 'two clocks that a cluster accepts follow each other’s records'],
  ['clusterNodesMax', 'clusterNodeRowsMax', 'one read returns all live nodes'],
  ['clusterNodesMax', 'linksMax', 'each node accepts a link from each other node'],
  ['recordBytesDefault', 'recordBytesMax', 'the default of a setting is within its range'],
  ['recordBytesMax', 'batchBytesMax', 'a batch takes a record of any size'],
  ['recordBytesMax', 'commitBytesMax', 'a commit takes a record of any size'],
  ['recordBytesMax', 'pageBytesMax', 'a page holds a record of any size'],
  ['recordBytesMax', 'ingestAtomicBytesMax', 'an atomic ingest takes a record of any size'],
  ['shortWriteBytesMax', 'commitBytesMax', 'a short write fits into a commit'],
  ['batchRecordsMax', 'commitRecordsMax', 'a batch is written in one commit'],
  ['smallChunkBytes', 'chunksGatheredBytes', 'joined chunks are larger than small ones'],
  ['chunksGatheredBytes', 'chunksHeldBytes', 'chunks are held until they are joined'],
  ['pageRowsDefault', 'pageRowsMax', 'the default of a page is within its range'],
  ['agentStatusesMax', 'pageRowsMax', 'a page of agents with their status is no longer than one without'],
  ['pageRowsMax', 'pageScanRecordsMax', 'a page call can examine as many records as it returns'],
  ['pageTargetBytes', 'pageBytesMax', 'a page has enough before it is full'],
  ['pageBytesMax', 'pageWorkBytesMax', 'a page call can read as much as it returns'],
  ['largeAnswerBytes', 'unsentBytesPerPrincipalMax', 'a principal can be sent a large answer'],
  ['pageBytesMax', 'unsentBytesPerPrincipalMax', 'a principal can be sent a whole page'],
  ['unsentBytesPerPrincipalMax', 'unsentBytesMax', 'one principal cannot use up the limit of all'],
  ['streamUnsentBytesPerPrincipalMax', 'unsentBytesMax', 'one principal cannot use up the limit of all'],
  ['requestBytesMax', 'grantBytesMax', 'any policies that can be set can be granted'],
  ['grantBytesMax', 'streamGrantBytesPerPrincipalMax', 'a user can open a stream'],
  ['streamGrantBytesPerPrincipalMax', 'streamGrantBytesMax', 'one user cannot use up the limit of all'],
  ['grantBytesMax', 'cachedGrantBytesMax', 'a compiled grant fits into the cache'],
  ['bodyBytesPerPrincipalMax', 'bodyBytesInMemoryMax', 'one principal cannot use up the limit of all'],
  ['ingestAtomicBytesMax', 'bodyBytesPerPrincipalMax', 'a principal can send the largest body'],
  ['ingestSplitRestBytesMax', 'recordBytesDefault', 'the rest of an object fits beside a member'],
  ['gunzipPieceBytes', 'gunzipBytes', 'the memory includes one piece'],
  ['ingestDedupeLinesMax', 'ingestChunkLines', 'lines with dedupe take more of a commit'],
  ['ingestChunkLines', 'ingestAtomicLinesMax', 'an atomic ingest has at least one chunk'],
  ['ingestChunkBytes', 'ingestAtomicBytesMax', 'an atomic ingest has at least one chunk'],
  [
    'ingestAtomicBytesMax',
    'ingestArrayBytesMax',
    'an array is buffered to its end before it is written atomically',
  ],
  [
    'ingestRejectedPartsMax',
    'ingestAtomicLinesMax',
    'a refused line becomes no more records than an atomic ingest has',
  ],
  ['ingestAtomicAgentsMax', 'ingestAtomicLinesMax', 'each agent of an ingest has a line'],
  ['ingestAtomicAgentsMax', 'ingestAgentsNamedMax', 'the summary of an atomic ingest names all agents'],
  ['ingestFaultsMax', 'ingestBadLinesDefault', 'an upload is not aborted before its faults are listed'],
  ['importLineBytesMax', 'importSealedBytesMax', 'a line of any size can wait for its seal'],
  ['importClockAheadMsMax', 'clockAheadMsMax', 'an import moves no clock further ahead than a write may'],
  ['shardRestartPauseMaxMs', 'shardRestartWindowMs', 'crashes count for longer than the pause between them'],
  ['poolCheckMs', 'passwordTaskMs', 'a task is checked before its time is over'],
  ['nestingDepthMax', 'otlpDepthMax', 'a record of a request nests as deeply as any'],
  ['ingestArrayBytesMax', 'otlpRepeatedBytesMax', 'the lines of a request take more than its body'],
  ['ingestChunkBytes', 'otlpPartBytesMax', 'the lines of a part fill a commit'],
  ['poolCheckMs', 'otlpTaskMs', 'a task is checked before its time is over'],
  ['poolCheckMs', 'readerTaskMs', 'a task is checked before its time is over'],
  ['poolRetryBaseMs', 'poolRetryMaxMs', 'the first pause is not the longest'],
  ['poolRetryMaxMs', 'poolWaitMs', 'a thread is started again while its task waits'],
  ['logRecordHeadsMax', 'logHeadsMax', 'a commit of the server log has at least one record'],
  ['streamBufferBytes', 'streamRecentBytes', 'a client that is slightly behind finds a page of events'],
  ['streamRecentBytes', 'streamBacklogBytesMax', 'the latest events of an agent may wait'],
  ['apiKeyLoadRows', 'apiKeysMax', 'one read returns no more keys than can exist'],
  ['graphNodesInFlightMax', 'graphNodesMax', 'a traversal reads no more nodes than it may have'],
  ['graphFirstRows', 'graphCallRowsMax', 'the first read of a node is one call'],
  ['graphCallRowsMax', 'graphRowsMax', 'a traversal makes at least one call'],
  ['graphEdgesMax', 'graphRowsMax', 'a traversal examines a row for each edge'],
  ['proposalDays', 'proposalRowDays', 'an expired proposal is read from its row for a while'],
  ['proposalsOfUserMax', 'proposalsOfUsersMax', 'one user cannot use up the limit of all'],
  ['proposalsOfUsersMax', 'proposalsNotErasingMax', 'users leave capacity for keys'],
  ['proposalsOfLineageMax', 'proposalsNotErasingMax', 'one key lineage leaves capacity for others'],
  ['proposalsNotErasingMax', 'proposalsOpenMax', 'erasures always have capacity'],
  ['proposalsOpenMax', 'commitRecordsMax', 'a change of the zone closes all proposals in one commit'],
  ['passwordThreadsMax', 'passwordQueueMax', 'the queue has a password for each thread'],
  ['loginWaitingPerEmailMax', 'loginWaitingMax', 'one e-mail cannot use up the limit of all'],
  ['mailsPerKindMax', 'linksPerPurposeMax', 'the next links do not revoke one that was just mailed'],
  ['clockAheadMsMax', 'revocationRetentionMs', 'a revocation is stored for as long as a clock may be ahead'],
  ['passkeySessionSecs', 'reauthenticationSecs', 'a fresh sign-in lasts for a whole ceremony'],
  ['mailRetryBaseMs', 'mailRetryMaxMs', 'the first pause is not the longest'],
  ['mailReplyMs', 'mailSendMs', 'the wait for one reply is shorter than for the mail'],
  ['mailStopMs', 'mailSendMs', 'a stopping server waits no longer than a running one'],
  ['postgresLookMs', 'clusterSecondTryMs', 'a second connection is not opened while an idle one is checked'],
  ['sinkRetryBaseMs', 'sinkRetryMaxMs', 'the first pause is not the longest'],
  ['sinkStatementMs', 'sinkReplyMs', 'PostgreSQL ends a statement before the sink closes the connection'],
] as const

/** The limits of `relations` and `assertRelated`. */
export type RelatedLimits = Readonly<
  Record<
    | (typeof relations)[number][0 | 1]
    | 'importBodyBytesMax'
    | 'clusterAppendMs'
    | 'clusterConnectMs'
    | 'importRecordsMax'
    | 'keyRotationsMax'
    | 'bodyMemoryQueueMax'
    | 'readBytes'
    | 'bufferedHolderBytes'
    | 'bodyMemorySpareBytes'
    | 'smallBodyBytesMax',
    number
  >
>

/** Keys that one byte can identify besides the first one. */
const ROTATIONS_OF_A_BYTE = 255

/** Checks the limits that depend on each other. @throws Error with the first pair that is wrong */
export function assertRelated(limits: RelatedLimits): void {
  for (const [smaller, larger, why] of relations) {
    const text = `${smaller} (${limits[smaller]}) is at most ${larger} (${limits[larger]}): ${why}`
    assert(limits[smaller] <= limits[larger], text)
  }
  const {
    commitRecordsMax,
    ingestAtomicLinesMax,
    importRecordsMax,
    recordBytesMax,
    importLineBytesMax,
    importSealedBytesMax,
  } = limits
  assert(
    commitRecordsMax + ingestAtomicLinesMax <= importRecordsMax,
    'importRecordsMax covers one seal: a full commit group with an atomic ingest at its end',
  )
  assert(
    2 * limits.commitBytesMax + 2 * recordBytesMax + limits.ingestAtomicBytesMax <= limits.importBodyBytesMax,
    'importBodyBytesMax covers one seal: full short and long writes with an atomic ingest at their end',
  )
  assert(
    importSealedBytesMax + 3 * importLineBytesMax <= limits.bodyBytesPerPrincipalMax,
    'bodyBytesPerPrincipalMax covers one import: lines that wait for their seal, and one line while it is copied',
  )
  assert(
    limits.clusterSecondTryMs + 2 * limits.clusterConnectMs < limits.clusterAppendMs,
    'clusterAppendMs covers a second connection, after a server that does not answer',
  )
  // The line of an export escapes quotes and backslashes of a body again.
  assert(2 * recordBytesMax < importLineBytesMax, 'importLineBytesMax covers a record of any size')
  assert(
    limits.ingestArrayBytesMax + 2 * limits.ingestAtomicBytesMax <= limits.bodyBytesPerPrincipalMax,
    'bodyBytesPerPrincipalMax covers one array, and a copy of it if it is refused and stored',
  )
  // The longest text of a record (src/front/http/ingest/receiver.ts).
  assert(
    2 * recordBytesMax + limits.requestBytesMax <= limits.ingestAtomicBytesMax,
    'ingestAtomicBytesMax covers any line that is read',
  )
  assert(
    2 * recordBytesMax + limits.requestBytesMax <= limits.otlpPartBytesMax,
    'otlpPartBytesMax covers any line that is read',
  )
  assert(
    2 * limits.bodyMemoryQueueMax * limits.smallBodyBytesMax <= limits.bodyMemorySpareBytes,
    'bodyMemorySpareBytes covers what those that wait have read, and as much that is on its way to them',
  )
  assert(
    limits.ingestArrayBytesMax +
      limits.ingestAtomicBytesMax +
      limits.otlpPartBytesMax +
      4 * limits.ingestChunkBytes +
      limits.bodyMemorySpareBytes <=
      limits.bodyBytesPerPrincipalMax,
    'bodyBytesPerPrincipalMax covers one OTLP request of any size, beside those that wait for memory',
  )
  assert(
    limits.bodyMemoryQueueMax * limits.readBytes < limits.bufferedHolderBytes,
    'bodies that wait for memory do not keep those of their principal paused that have it',
  )
  assert(limits.keyRotationsMax <= ROTATIONS_OF_A_BYTE, 'keyRotationsMax fits into a byte')
}
