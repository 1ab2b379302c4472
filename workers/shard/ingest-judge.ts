import type { Grant } from '../../src/auth/grant.js'
import type { Policy } from '../../src/auth/row-policy.js'
import type { Refusal } from '../../src/base/errors.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { UserAccess, WriteOptions } from '../../src/protocol/command-options.js'
import { draftRules, emergeRefusal, targetAgent } from '../commands/records.js'
import type { DraftRules } from '../commands/drafts.js'
import type { CommitGroup, Draft } from './commit-group.js'
import { answeredBefore } from './idempotent-answers.js'
import { rejectedDrafts } from './rejected-line.js'
import { covers, grantOf, isRefused, notAllowed } from './row-access.js'
import type { ShardState } from './state.js'
import { eventReused, rejectedKey, type OnceKey } from './written-once.js'

/** One line that was read: what to append, or why not. */
export interface ReadLine {
  line: number
  agent: string
  /** As they came. */
  bytes: Uint8Array
  draft: Draft | Refusal
  /** The attributes of the CloudEvent of binary mode whose data it is. */
  event?: Readonly<Record<string, string>>
  /** For a refused line that is kept: the record that keeps it, those with its further parts, and why it was refused. */
  kept?: { refusal: Refusal; draft: Draft; rest: readonly Draft[]; once?: OnceKey }
  /** Its key, where each line is written once. */
  once?: OnceKey
  /** The verdict of its agent's policies, which holds until they change. */
  judged?: { policies: readonly Policy[]; allowed: boolean }
}

/** Drafts of ingest are always marked, since a sink may be set up later (docs/adr/0013-postgres-sink.md). */
export function ingestRules(
  state: ShardState,
  { options, integers }: { options: WriteOptions; integers?: 'text' },
): DraftRules {
  return { ...draftRules(state, options), ingested: true, largeAsText: integers === 'text' }
}

/** A line that is on disk already; with `refusal`, as a refused line that was kept. */
export interface Duplicate {
  onDisk: true
  refusal?: Refusal
}

/** What to do with a line: a draft to append, a refusal, or nothing because it was written before. */
export type LineDecision = Draft | Refusal | Duplicate

/** What lines of one agent are judged by: what a user's policies grant, or a refusal of all of them. */
type AgentRules = Refusal | { grant: Grant | undefined; policies: readonly Policy[] }

/** Judges lines by the policies of their agents as one group sees them; a key may write every line. */
export class LineJudge {
  readonly #state: ShardState
  readonly #command: CommandOf<'ingestChunk'>
  readonly #access: UserAccess | undefined
  readonly #group: CommitGroup
  readonly #found = new Map<string, AgentRules>()
  /** Digests of the earlier lines, where each line is written once. */
  readonly #seen = new Map<string, string>()

  constructor(state: ShardState, command: CommandOf<'ingestChunk'>, group: CommitGroup) {
    this.#state = state
    this.#command = command
    this.#access = command.access
    this.#group = group
  }

  /** What to append, or why not. Where refused lines are kept, the record that keeps the line. */
  verdict(line: ReadLine): LineDecision {
    const judged = this.#ownVerdict(line)
    const first = 'code' in judged || line.once === undefined ? 'new' : this.#knows(line.once)
    if (first === 'written') return { onDisk: true }
    const own = first === 'other' ? eventReused : judged
    if (!('code' in own) || this.#command.mode !== 'keep' || line.agent === '') return own
    const found = this.#found.get(line.agent) ?? this.#find(line.agent)
    if ('code' in found) return own
    const kept = this.#keptDrafts(line, own)
    // A caller who may not write such a record cannot have one written by sending a bad line.
    if (kept === undefined || ![kept.draft, ...kept.rest].every((draft) => covers(found.grant, draft)))
      return own
    const { once } = kept
    if (once !== undefined && this.#knows(once) === 'written') return { onDisk: true, refusal: own }
    return kept.draft
  }

  /** Whether a line that is written once is new, was written before, or its key was used for something else. */
  #knows(once: OnceKey): 'new' | 'written' | 'other' {
    const name = once.row.toString('latin1')
    const seen = this.#seen.get(name)
    if (seen !== undefined) return seen === once.digest ? 'written' : 'other'
    const before = answeredBefore(this.#state, this.#group, once)
    if (before !== undefined) return typeof before === 'function' ? 'written' : 'other'
    this.#seen.set(name, once.digest)
    return 'new'
  }

  #keptDrafts(line: ReadLine, refusal: Refusal): ReadLine['kept'] {
    if (line.kept?.refusal !== refusal) {
      delete line.kept
      const rules = ingestRules(this.#state, this.#command)
      const [draft, ...rest] = rejectedDrafts(line, refusal, rules)
      const { once } = this.#command
      if (draft !== undefined) {
        line.kept = {
          refusal,
          draft,
          rest,
          ...(once !== undefined && { once: rejectedKey(once, line.agent, line.bytes) }),
        }
      }
    }
    return line.kept
  }

  #ownVerdict(line: ReadLine): Draft | Refusal {
    if ('code' in line.draft) return line.draft
    const found = this.#found.get(line.agent) ?? this.#find(line.agent)
    if ('code' in found) return found
    const { grant, policies } = found
    if (line.judged?.policies !== policies) {
      line.judged = { policies, allowed: covers(grant, line.draft) }
    }
    return line.judged.allowed ? line.draft : notAllowed
  }

  #find(name: string): AgentRules {
    const found = this.#standing(name)
    this.#found.set(name, found)
    return found
  }

  #standing(name: string): AgentRules {
    const access = this.#access
    if (access === undefined) return emergeRefusal(this.#state, name, this.#group) ?? everything
    const agent = targetAgent(this.#state, { agent: name, emerge: false, options: {}, access }, this.#group)
    if ('code' in agent) return agent
    const grant = grantOf(agent, 'write', access)
    return isRefused(grant) ? grant : { grant, policies: agent.policies }
  }
}

const everything: AgentRules = { grant: undefined, policies: [] }
