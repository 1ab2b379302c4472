import { type Checked, isKeyNumber, isText, listOf, oneOf, fields } from '../base/shape.js'
import { zones } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Messages about the row of an organism, which is in the shard of `<organism_id>::auth`, so that one
 * transaction checks the row and creates the auth namespace (docs/adr/0017-organisms.md).
 */

export const isOrganismRow = fields({
  organismId: isText,
  name: isText,
  /** The initial members, without the id of the organism; later ones are found by their addresses. */
  members: listOf(fields({ name: isText, zone: oneOf(...zones) })),
  createdAtMs: isKeyNumber,
})

export type OrganismRow = Checked<typeof isOrganismRow>

/** An agent that is created with its organism. */
export type OrganismMember = OrganismRow['members'][number]

/** Creates the row of an organism. Its members are created afterwards, each in its own shard. */
interface OrganismCreate {
  kind: 'organismCreate'
  /** `<organism_id>::auth`, which determines the shard. */
  agent: string
  organismId: string
  name: string
  members: OrganismMember[]
  options: WriteOptions
}

interface OrganismGet {
  kind: 'organismGet'
  agent: string
  organismId: string
}

/** Lists the organisms of the shard by id, after `after`. */
interface OrganismList {
  kind: 'organismList'
  after: string
  limit: number
}

export interface OrganismOutcome {
  kind: 'organism'
  row: OrganismRow
  initialised: boolean
}

/** Organisms of one shard, in order; `total` counts all. */
interface OrganismsOutcome {
  kind: 'organisms'
  rows: OrganismRow[]
  total: number
}

export type OrganismCommand = OrganismCreate | OrganismGet | OrganismList

export type OrganismAnswer = OrganismOutcome | OrganismsOutcome
