import { assert } from '../assert.js'

/** [the smaller or equal limit, the larger one, why]: the limits that depend on each other. */
const relations = [
  ['linkPieceBytes', 'linkPiecesBytes', 'several principals have pieces under way'],
  ['linkReadSaidBytes', 'linkPiecesBytes', 'what was read is said before all pieces wait for it'],
  ['pageBytesMax', 'linkAnswerBytesPerPrincipalMax', 'a principal can be sent a whole page over a link'],
  ['linkAnswerBytesPerPrincipalMax', 'linkAnswerBytesMax', 'one principal has its share of a link'],
  ['clusterNodesMax', 'clusterNodeRowsMax', 'all nodes that are alive are read'],
  ['clusterNodesMax', 'linksMax', 'each node can have a link from each other one'],
  ['recordBytesDefault', 'recordBytesMax', 'the default of a setting is within its range'],
  ['recordBytesMax', 'batchBytesMax', 'a batch takes a record of any size'],
  ['recordBytesMax', 'commitBytesMax', 'a commit takes a record of any size'],
  ['recordBytesMax', 'pageBytesMax', 'a page holds a record of any size'],
  ['recordBytesMax', 'ingestAtomicBytesMax', 'an atomic ingest takes a record of any size'],
  ['shortWriteBytesMax', 'commitBytesMax', 'a short write fits into a commit'],
  ['batchRecordsMax', 'commitRecordsMax', 'a batch is written in one commit'],
  ['smallChunkBytes', 'chunksGatheredBytes', 'chunks that are put together are larger than small ones'],
  ['chunksGatheredBytes', 'chunksHeldBytes', 'chunks are held until they were put together'],
  ['pageRowsDefault', 'pageRowsMax', 'the default of a page is within its range'],
  ['agentStatusesMax', 'pageRowsMax', 'a page of agents with their status is no longer than one without'],
  ['pageRowsMax', 'pageScanRecordsMax', 'a page call looks at as many records as it may answer with'],
  ['pageEnoughBytes', 'pageBytesMax', 'a page has enough before it is full'],
  ['pageBytesMax', 'pageWorkBytesMax', 'a page call reads as much as it may answer with'],
  ['largeAnswerBytes', 'unsentBytesPerPrincipalMax', 'a principal can be sent a large answer'],
  ['pageBytesMax', 'unsentBytesPerPrincipalMax', 'a principal can be sent a whole page'],
  ['unsentBytesPerPrincipalMax', 'unsentBytesMax', 'one principal has its share of all that waits'],
  ['streamUnsentBytesPerPrincipalMax', 'unsentBytesMax', 'one principal has its share of all that waits'],
  ['requestBytesMax', 'grantBytesMax', 'policies that can be set can be granted'],
  ['grantBytesMax', 'streamGrantBytesPerPrincipalMax', 'a user can open a stream'],
  ['streamGrantBytesPerPrincipalMax', 'streamGrantBytesMax', 'one user has its share'],
  ['grantBytesMax', 'grantsKeptBytes', 'a grant is compiled once'],
  ['bodyBytesPerPrincipalMax', 'bodyBytesInMemoryMax', 'one principal has its share of all bodies'],
  ['ingestAtomicBytesMax', 'bodyBytesPerPrincipalMax', 'a principal can send the largest body'],
  ['ingestSplitRestBytesMax', 'recordBytesDefault', 'the rest of an object fits beside a member'],
  ['gunzipPieceBytes', 'gunzipBytes', 'decompressing takes a piece at least'],
  ['ingestOnceLinesMax', 'ingestChunkLines', 'lines that are written once take more of a commit'],
  ['ingestChunkLines', 'ingestAtomicLinesMax', 'what is written whole is at least one chunk'],
  ['ingestChunkBytes', 'ingestAtomicBytesMax', 'what is written whole is at least one chunk'],
  ['ingestAtomicBytesMax', 'ingestArrayBytesMax', 'an array that is written whole is held until its end'],
  [
    'ingestRejectedPartsMax',
    'ingestAtomicLinesMax',
    'what is kept is no more records than what is written whole',
  ],
  ['ingestAtomicAgentsMax', 'ingestAtomicLinesMax', 'each agent of an ingest has a line'],
  ['ingestAtomicAgentsMax', 'ingestAgentsNamedMax', 'the summary of an atomic ingest names all agents'],
  ['ingestFaultsMax', 'ingestBadLinesDefault', 'an upload is not ended before its faults are named'],
  ['importLineBytesMax', 'importSealedBytesMax', 'a line of any size can wait for its seal'],
  ['importClockAheadMsMax', 'clockAheadMsMax', 'an import takes no clock further ahead than a write may'],
  ['shardRestartPauseMaxMs', 'shardRestartWindowMs', 'deaths count for longer than the pause between them'],
  ['poolLookMs', 'passwordTaskMs', 'a task is looked at before it is too late'],
  ['poolLookMs', 'readerTaskMs', 'a task is looked at before it is too late'],
  ['poolRetryBaseMs', 'poolRetryMaxMs', 'the first pause is not the longest'],
  ['poolRetryMaxMs', 'poolWaitMs', 'a thread is tried again while its task waits'],
  ['logRecordHeadsMax', 'logHeadsMax', 'a commit of the server log has one record at least'],
  ['streamBufferBytes', 'streamRecentBytes', 'a reader that is a little behind finds a page of events'],
  ['streamRecentBytes', 'streamBacklogBytesMax', 'the latest events of an agent may wait'],
  ['apiKeyLoadRows', 'apiKeysMax', 'no more keys are read than there can be'],
  ['graphNodesAtOnce', 'graphNodesMax', 'a traversal asks for no more nodes than it has'],
  ['graphFirstRows', 'graphCallRowsMax', 'the first look at a node is one call'],
  ['graphCallRowsMax', 'graphRowsMax', 'a traversal makes one call at least'],
  ['graphEdgesMax', 'graphRowsMax', 'a traversal looks at a row for each edge'],
  ['proposalDays', 'proposalRowDays', 'a proposal that expires is answered from its row for a while'],
  ['proposalsOfUserMax', 'proposalsOfUsersMax', 'one user has its share'],
  ['proposalsOfUsersMax', 'proposalsNotErasingMax', 'users leave room to keys'],
  ['proposalsOfLineMax', 'proposalsNotErasingMax', 'one line of keys leaves room to others'],
  ['proposalsNotErasingMax', 'proposalsOpenMax', 'there is room to erase'],
  ['proposalsOpenMax', 'commitRecordsMax', 'a change of the zone ends all proposals in one commit'],
  ['passwordThreadsMax', 'passwordQueueMax', 'each thread has a password to go on with'],
  ['loginWaitingPerEmailMax', 'loginWaitingMax', 'one e-mail has its share of all that waits'],
  ['mailsPerKindMax', 'linksPerPurposeMax', 'a link that was just mailed is not ended by the next ones'],
  ['clockAheadMsMax', 'endedKeptMs', 'what has ended is kept for as long as a clock may be ahead'],
  ['passkeySessionSecs', 'reauthenticationSecs', 'a fresh sign-in is enough for a whole ceremony'],
  ['mailRetryBaseMs', 'mailRetryMaxMs', 'the first pause is not the longest'],
  ['mailSilenceMs', 'mailSendMs', 'a silent mail server is given up before the mail is'],
  ['mailStopMs', 'mailSendMs', 'a server that stops waits no longer than any other'],
  ['sinkRetryBaseMs', 'sinkRetryMaxMs', 'the first pause is not the longest'],
  ['sinkStatementMs', 'sinkSilenceMs', 'PostgreSQL ends a statement before its connection is given up'],
] as const

/** The limits that depend on each other; the compiler checks that each exists. */
export type RelatedLimits = Readonly<
  Record<(typeof relations)[number][0 | 1] | 'importRecordsMax' | 'keyRotationsMax', number>
>

/** The most keys that a byte can name besides the first one. */
const ROTATIONS_OF_A_BYTE = 255

/** Stops a program whose limits contradict each other. @throws Error that names the first two that do not */
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
    'importRecordsMax holds what one seal can cover: a full commit group, and an atomic ingest that came last',
  )
  assert(
    importSealedBytesMax + 3 * importLineBytesMax <= limits.bodyBytesPerPrincipalMax,
    'bodyBytesPerPrincipalMax holds one import: what waits for its seal, and a line while it grows and is handed on',
  )
  // Quotes and backslashes of a body are escaped once more in its line.
  assert(2 * recordBytesMax < importLineBytesMax, 'importLineBytesMax holds the line of a record of any size')
  assert(
    limits.ingestArrayBytesMax + 2 * limits.ingestAtomicBytesMax <= limits.bodyBytesPerPrincipalMax,
    'bodyBytesPerPrincipalMax holds one array, and a copy of it while that is kept where it is refused',
  )
  // The longest text of a record (src/front/http/ingest/receiver.ts).
  assert(
    2 * recordBytesMax + limits.requestBytesMax <= limits.ingestAtomicBytesMax,
    'ingestAtomicBytesMax keeps any line that is read',
  )
  assert(limits.keyRotationsMax <= ROTATIONS_OF_A_BYTE, 'keyRotationsMax is what a byte can number')
}
