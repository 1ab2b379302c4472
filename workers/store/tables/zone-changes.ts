import { assert } from '../../../src/base/assert.js'
import { isText, members, type Check } from '../../../src/base/shape.js'
import { isZone, type Zone } from '../../../src/strand/zone.js'
import type { Environment } from '../environment.js'
import { byAgentInKey } from '../row-move.js'
import type { TableSpec } from '../table-spec.js'
import { recordBySeq } from './records.js'
import { runKey } from './tables.js'

const isGenesis: Check<{ zone: string }> = members({ zone: isText })

/** A change of an agent's zone that is accepted but not on disk yet. */
export interface ZoneChange {
  agentNo: number
  /** Seq of the `sys/zone` record. */
  seq: number
  zone: Zone
}

export const zoneChanges: TableSpec<Environment, ZoneChange[]> = {
  open: (environment) => environment,
  moves: { zoneChanges: byAgentInKey },
  changes: () => [],
  rows: ({ length }) => length,
  put(environment, changes) {
    for (const { agentNo, seq, zone } of changes)
      environment.zoneChanges.put(runKey(agentNo, seq), Buffer.from(zone))
  },
}

/** The zone of an agent as of `seq`: from the last change up to it, or from the genesis record. */
export function zoneAt(environment: Environment, agentNo: number, seq: number): Zone {
  const range = {
    start: runKey(agentNo, seq),
    end: runKey(agentNo, 0),
    reverse: true,
    inclusiveEnd: true,
    limit: 1,
  }
  for (const { value } of environment.zoneChanges.getRange(range)) return checkedZone(value.toString())
  const genesis = recordBySeq(environment, agentNo, 0)
  assert(genesis !== undefined, 'an agent has its genesis record')
  const body: unknown = JSON.parse(Buffer.from(genesis.body).toString())
  assert(isGenesis(body), 'a genesis record has a zone')
  return checkedZone(body.zone)
}

function checkedZone(text: string): Zone {
  assert(isZone(text), 'a zone on a strand is one of the four')
  return text
}
