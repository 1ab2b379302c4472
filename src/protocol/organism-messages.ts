import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Messages about the row of an organism, which is in the shard of `<organism_id>::auth`, so that one
 * transaction checks the row and creates the auth namespace (docs/adr/0017-organisms.md).
 */

/** An agent that is created with its organism. */
export interface OrganismMember {
  /** Without the id of the organism. */
  name: string
  zone: Zone
}

/** An organism as it is stored. */
export interface OrganismRow {
  organismId: string
  name: string
  /** The initial members; later ones are found by their addresses. */
  members: OrganismMember[]
  createdAtMs: number
}

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
