// A strand and its heads in a server log, valid and invalid: exports of both, a stored checkpoint of the log,
// and the result of comparing them.

import { signCheckpoint } from '../../dist/src/strand/checkpoint.js'
import { genesisBody } from '../../dist/src/strand/genesis.js'
import { canonicalJson } from '../../dist/src/strand/json.js'
import { keyPairFromSeed } from '../../dist/src/strand/keys.js'
import { START_MS, Strand, first, reading } from './strand-maker.mjs'

const logKeys = keyPairFromSeed(Buffer.alloc(32, 9))
const LOG = 'server::log'
const other = 'ab'.repeat(32)

class Log extends Strand {
  constructor() {
    super({
      body: genesisBody({
        agent: LOG,
        createdAtMs: START_MS,
        publicKey: logKeys.publicKey,
        zone: 'immutable_core',
      }),
      header: { key: logKeys.publicKey },
      keys: logKeys,
    })
    this.keys = logKeys
  }
  logHeads(...heads) {
    return this.write(canonicalJson({ clocks: ['0199c5b8f2a4-0003'], heads }))
  }
  write(body, type = 'sys/heads') {
    return this.append({ name: 'heads', type, body })
  }
  note(size = this.records.length) {
    return signCheckpoint(this.checkpoint(size), logKeys)
  }
  lines(change = {}) {
    return super.lines({ ...change, manifest: { agent: LOG, ...change.manifest } })
  }
}

/** A strand of this many records. A fork has other records from `forkAt`. */
function strandOf(records, forkAt = records) {
  const strand = new Strand()
  for (let seq = 1; seq < records; seq += 1) {
    strand.append({ name: 'reading', body: reading(seq < forkAt ? seq : seq + 0.5) })
  }
  return strand
}

const whole = strandOf(12)
const fork = strandOf(12, 6)
const head = (strand, size) => [strand.strand, size, strand.records[size - 1].hash]

export function logsOf() {
  const newLog = () => new Log().logHeads(head(whole, 4), [other, 3, other]).logHeads(head(whole, 8))
  const strands = {
    whole: whole.lines(),
    cut: strandOf(7).lines(),
    forked: fork.lines(),
    'from a later record': whole.lines({ from: 5 }),
  }
  const cases = []
  const add = (name, log, more = {}) => {
    const { strand = 'whole', note = log.note(), lines = log.lines(), fault } = more
    const expected =
      fault === undefined ? { ok: true, settled: more.settled ?? 8 } : { ok: false, reason: fault }
    const keys = { public_key: first.publicKey, log_key: logKeys.publicKey }
    cases.push({ name, strand, log: lines, note, ...keys, expected })
  }
  fineCases(add, newLog)
  withheldCases(add, newLog)
  repeatedCases(add, newLog)
  return { strands, cases }
}

function fineCases(add, newLog) {
  add('told twice', newLog())
  add('told, and the log goes on behind the checkpoint', newLog().logHeads(head(whole, 12)), {
    note: newLog().note(),
  })
  add('told further than an older export goes, behind the checkpoint', newLog().logHeads(head(whole, 12)), {
    note: new Log().logHeads(head(whole, 4), [other, 3, other]).note(),
    strand: 'cut',
    fault: undefined,
    settled: 4,
  })
  add('cut', newLog(), {
    strand: 'cut',
    fault: 'The tail was cut: the log told of 8 records, the export has 7',
  })
  add('forked', newLog(), {
    strand: 'forked',
    fault: 'The strand was forked at or before record 7: the log told of another',
  })
  add('not told', new Log().logHeads([other, 3, other]), {
    fault: 'The log of 2 records does not tell of this strand',
  })
  add('told of what a part leaves out', newLog(), {
    strand: 'from a later record',
    fault: 'The log tells of record 3, which the export leaves out',
  })
}

function withheldCases(add, newLog) {
  const missingBody = (seq) => `The server log: Record ${seq} of the log has no body`
  add('the record that tells more is erased, the strand cut', newLog(), {
    strand: 'cut',
    lines: newLog().lines({ erased: [2] }),
    fault: missingBody(2),
  })
  add('the record that tells more is withheld, the strand cut', newLog(), {
    strand: 'cut',
    lines: newLog().lines({ withheld: [2] }),
    fault: missingBody(2),
  })
  add('a record of the log is erased, the strand whole', newLog(), {
    lines: newLog().lines({ erased: [1] }),
    fault: missingBody(1),
  })
  add('a record of the log is of another type', newLog().write('{}', 'record'), {
    fault: 'The server log: Record 3 of the log is not of heads',
  })
  const unreadable = (name, body) =>
    add(name, newLog().write(body), { fault: 'The server log: Record 3 of the log cannot be read' })
  const [strand, , hash] = head(whole, 9)
  unreadable('a record of the log is no object', '[]')
  unreadable('a record of the log has no heads', '{"clocks":[]}')
  unreadable('a record of the log has no clocks', `{"heads":[["${strand}",9,"${hash}"]]}`)
  unreadable('a head of four', `{"clocks":[],"heads":[["${strand}",9,"${hash}",1]]}`)
  unreadable('a head in capitals', `{"clocks":[],"heads":[["${strand}",9,"${hash.toUpperCase()}"]]}`)
  unreadable('a size with a fraction of nothing', `{"clocks":[],"heads":[["${strand}",9.0,"${hash}"]]}`)
  unreadable('a size with an exponent', `{"clocks":[],"heads":[["${strand}",9e0,"${hash}"]]}`)
  unreadable('a size of 0', `{"clocks":[],"heads":[["${strand}",0,"${hash}"]]}`)
  unreadable('a strand twice', `{"clocks":[],"heads":[["${strand}",9,"${hash}"],["${strand}",10,"${hash}"]]}`)
  add('heads twice', newLog().write('{"clocks":[],"heads":[],"heads":[]}'), {
    fault: 'The server log: The body is not JSON',
  })
  const many = Array.from({ length: 257 }, (_, at) => [at.toString(16).padStart(64, '0'), 1, other])
  unreadable('257 heads', canonicalJson({ clocks: [], heads: many }))
}

function repeatedCases(add, newLog) {
  add(
    'a rewritten strand, told on with a larger size',
    new Log().logHeads(head(whole, 8)).logHeads(head(fork, 10)),
    {
      strand: 'forked',
      fault: 'The strand was forked at or before record 7: the log told of another',
      note: new Log().logHeads(head(whole, 8)).logHeads(head(fork, 10)).note(),
    },
  )
  add(
    'a rewritten strand, told on with a smaller size',
    new Log().logHeads(head(whole, 8)).logHeads(head(fork, 6)),
    {
      strand: 'forked',
      fault: 'The server log: Record 2 of the log tells of 6 records, 8 were told before',
    },
  )
  add('the same head told again', newLog().logHeads(head(whole, 8)), {
    fault: 'The server log: Record 3 of the log tells of 8 records, 8 were told before',
  })
  add('a fork told before and not after', new Log().logHeads(head(fork, 7)).logHeads(head(whole, 8)), {
    fault: 'The strand was forked at or before record 6: the log told of another',
  })
  add('a fork told behind the checkpoint', newLog().logHeads(head(fork, 10)), {
    note: newLog().note(),
    fault: 'The strand was forked at or before record 9: the log told of another',
  })
  const rewound = new Log().logHeads(head(whole, 4))
  add('a log that was cut', rewound, {
    note: newLog().note(),
    fault: 'The server log: The tail was cut: the checkpoint has 3 records, the export 2',
  })
  add('a log that was forked', rewound.logHeads(head(fork, 8)), {
    note: newLog().note(),
    fault:
      'The server log: The strand was forked at or before record 2: the checkpoint is over other records',
  })
}
