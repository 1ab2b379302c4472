import type { Zone } from '../strand/zone.js'
import type { WriteOptions } from './command-options.js'

/*
 * Messages about an organism's row, which is in the shard of `<organism_id>::auth`, so that one transaction checks the
 * row and makes the auth namespace (docs/adr/0017-organisms.md).
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
  /** The members that it was made with; later ones are found by their addresses. */
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

/** Every command about organisms. */
export type OrganismCommand = OrganismCreate | OrganismGet | OrganismList

/** Every outcome of these commands besides replies. */
export type OrganismAnswer = OrganismOutcome | OrganismsOutcome
