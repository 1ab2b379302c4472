import type { Grant } from '../../../src/auth/grant.js'
import type { Policy } from '../../../src/auth/row-policy.js'
import type { Refusal } from '../../../src/base/errors.js'
import type { CommandOf } from '../../../src/protocol/messages.js'
import type { UserAccess, WriteOptions } from '../../../src/protocol/command-options.js'
import { draftRules, emergeRefusal, targetAgent } from '../records.js'
import type { DraftRules } from '../drafts.js'
import type { CommitGroup, Draft } from '../../shard/commit-group.js'
import { answeredBefore } from '../idempotency/answers.js'
import { rejectedDrafts } from './rejected-line.js'
import { covers, grantOf, isRefused, notAllowed, refuserOf } from '../../mutations/row-access.js'
import type { ShardState } from '../../shard/state.js'
import { eventReused, rejectedKey, type OnceKey } from './written-once.js'

/** A parsed line: the record to append, or the refusal. */
export interface ReadLine {
  line: number
  agent: string
  /** The bytes as received. */
  bytes: Uint8Array
  draft: Draft | Refusal
  /** The attributes of the CloudEvent in binary mode whose data is the line. */
  event?: Readonly<Record<string, string>>
  /**
   * For a refused line that is kept: the refusal, the record with the line, and the records with its further
   * parts.
   */
  kept?: { refusal: Refusal; draft: Draft; rest: readonly Draft[]; once?: OnceKey }
  once?: OnceKey
  /** The verdict of the agent's policies, which is valid until they change. */
  judged?: { policies: readonly Policy[]; allowed: boolean }
}

/**
 * The rules of ingest drafts, which are always marked because a sink may be set up later
 * (docs/adr/0013-postgres-sink.md).
 */
export function ingestRules(
  state: ShardState,
  { options, integers }: { options: WriteOptions; integers?: 'text' },
): DraftRules {
  return { ...draftRules(state, options), ingested: true, largeAsText: integers === 'text' }
}

/** A line that is already on disk; with `refusal`, as a kept refused line. */
export interface Duplicate {
  onDisk: true
  refusal?: Refusal
}

/** The decision for a line: a draft to append, a refusal, or nothing because it was already written. */
export type LineDecision = Draft | Refusal | Duplicate

/** The rules for the lines of one agent: the user's grant, or a refusal of all lines. */
type AgentRules =
  | Refusal
  | { grant: Grant | undefined; policies: readonly Policy[]; refused: (draft: Draft) => Refusal }

/** Judges lines by the policies of their agents as of one commit group; an API key may write every line. */
export class LineJudge {
  readonly #state: ShardState
  readonly #command: CommandOf<'ingestChunk'>
  readonly #access: UserAccess | undefined
  readonly #group: CommitGroup
  readonly #found = new Map<string, AgentRules>()
  /** Digests of earlier lines by their key, if each line is written once. */
  readonly #seen = new Map<string, string>()

  constructor(state: ShardState, command: CommandOf<'ingestChunk'>, group: CommitGroup) {
    this.#state = state
    this.#command = command
    this.#access = command.access
    this.#group = group
  }

  /** Decides a line. If refused lines are kept, the draft of a refused line contains that line. */
  verdict(line: ReadLine): LineDecision {
    const judged = this.#verdictOnDraft(line)
    const first = 'code' in judged || line.once === undefined ? 'new' : this.#onceState(line.once)
    if (first === 'written') return { onDisk: true }
    const own = first === 'other' ? eventReused : judged
    if (!('code' in own) || this.#command.mode !== 'keep' || line.agent === '') return own
    const found = this.#found.get(line.agent) ?? this.#rulesOf(line.agent)
    if ('code' in found) return own
    const kept = this.#keptDrafts(line, own)
    // A caller that may not write such a record must not cause one by sending an invalid line.
    if (kept === undefined || ![kept.draft, ...kept.rest].every((draft) => covers(found.grant, draft)))
      return own
    const { once } = kept
    if (once !== undefined && this.#onceState(once) === 'written') return { onDisk: true, refusal: own }
    return kept.draft
  }

  /** Whether a line that is written once is new, was already written, or has the key of another line. */
  #onceState(once: OnceKey): 'new' | 'written' | 'other' {
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

  #verdictOnDraft(line: ReadLine): Draft | Refusal {
    if ('code' in line.draft) return line.draft
    const found = this.#found.get(line.agent) ?? this.#rulesOf(line.agent)
    if ('code' in found) return found
    const { grant, policies, refused } = found
    if (line.judged?.policies !== policies) {
      line.judged = { policies, allowed: covers(grant, line.draft) }
    }
    return line.judged.allowed ? line.draft : refused(line.draft)
  }

  #rulesOf(name: string): AgentRules {
    const found = this.#loadRules(name)
    this.#found.set(name, found)
    return found
  }

  #loadRules(name: string): AgentRules {
    const access = this.#access
    if (access === undefined) return emergeRefusal(this.#state, name, this.#group) ?? everything
    const agent = targetAgent(this.#state, { agent: name, emerge: false, options: {}, access }, this.#group)
    if ('code' in agent) return agent
    const grant = grantOf(agent, 'write', access)
    if (isRefused(grant)) return grant
    const refused = refuserOf(this.#state, agent, { action: 'write', access })
    return { grant, policies: agent.policies, refused }
  }
}

const everything: AgentRules = { grant: undefined, policies: [], refused: () => notAllowed }
