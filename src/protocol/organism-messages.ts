import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * What the front thread asks of an organism's row, which lives in the shard of `<organism_id>::auth`: so its auth
 * namespace is made in one transaction with the look at it (docs/adr/0017-organisms.md).
 */

/** An agent that is made together with its organism. */
export interface OrganismMember {
  /** Without the organism's id. */
  name: string
  zone: Zone
}

/** An organism as it is kept. */
export interface OrganismRow {
  organismId: string
  name: string
  /** Those that it was made with; later ones are known by their addresses. */
  members: OrganismMember[]
  createdAtMs: number
}

/** Makes the row of an organism; its members are made after it, each on its own shard. */
interface OrganismCreate {
  kind: 'organismCreate'
  /** `<organism_id>::auth`, which decides the shard. */
  agent: string
  organismId: string
  name: string
  members: OrganismMember[]
  options: WriteOptions
}

/** One organism by its id. */
interface OrganismGet {
  kind: 'organismGet'
  agent: string
  organismId: string
}

/** The organisms of the shard by id, after `after`. */
interface OrganismList {
  kind: 'organismList'
  after: string
  limit: number
}

/** One organism. */
export interface OrganismOutcome {
  kind: 'organism'
  row: OrganismRow
  /** Whether it has an auth namespace. */
  initialised: boolean
}

/** Organisms of one shard, in order, and how many it has in all. */
interface OrganismsOutcome {
  kind: 'organisms'
  rows: OrganismRow[]
  total: number
}

/** What can be asked of organisms. */
export type OrganismCommand = OrganismCreate | OrganismGet | OrganismList

/** What is answered of organisms beside replies. */
export type OrganismAnswer = OrganismOutcome | OrganismsOutcome
