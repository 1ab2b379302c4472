import type { ComponentChildren } from 'preact'
import {
  type AgentStatusResponse,
  type ProposalView,
  type Proposed,
  ServiceError,
  type Zone,
} from '../../../client/index.js'
import { type ChangeConsequences, Confirm, type Confirmation, ConsequenceList } from '../../parts/confirm.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { CopyButton } from '../../parts/texts.js'
import { agentLink, proposalLink } from '../../route.js'
import { zoneMeanings, zoneRules } from '../../parts/labels.js'
import { whatText } from '../../parts/proposal-labels.js'
import type { SignedIn } from '../../parts/session.js'
import { type ApprovalContext, type Approvers, approversOf } from './approvers.js'

/** A change of an agent that the user confirms in a dialog. */
export interface AgentChange<Applied> {
  agent: string
  title: string
  consequences: ChangeConsequences
  button: string
  /** The text to type first; undefined if the change can be undone. */
  confirm: Confirmation | undefined
  apply: () => Promise<Applied | Proposed>
  /** Describes the result, with the new public key if the key was changed. */
  resultOf: (applied: Applied) => { text: string; publicKey?: string }
}

/** A dialog that confirms the change of an agent, after listing its consequences. */
export function ChangeAgent<Applied extends { seq: number }>(props: {
  change: AgentChange<Applied>
  /** The rule of the zone, with the keys that can approve. */
  rule: ComponentChildren
  /** Further fields of the form. */
  children?: ComponentChildren
  close: (isChanged: boolean) => void
}) {
  const { change, rule, children, close } = props
  const { agent, consequences, resultOf, ...confirmed } = change
  const describeResult = (applied: Applied) => (
    <Changed agent={agent} seq={applied.seq} {...resultOf(applied)} />
  )
  return (
    <Confirm<Applied> change={{ ...confirmed, explainError, describeResult, close }}>
      {children}
      <ConsequenceList consequences={consequences} />
      {rule}
    </Confirm>
  )
}

function Changed(props: { agent: string; seq: number; text: string; publicKey?: string }) {
  const { agent, seq, text, publicKey } = props
  return (
    <>
      <p role="status">
        {text} See the signed <a href={agentLink(agent, seq)}>record {countText(seq)}</a>.
      </p>
      {publicKey !== undefined && (
        <p class="long">
          <code>{publicKey}</code> <CopyButton text={publicKey} name="the new key" />
        </p>
      )}
    </>
  )
}

function explainError(error: unknown): ComponentChildren {
  if (!(error instanceof ServiceError) || error.code !== 'proposal_open') return explain(error)
  const { proposal_id: id } = error.problem
  return (
    <>
      A proposal to change this is already pending.{' '}
      {typeof id === 'string' && <a href={proposalLink(id)}>Open the proposal</a>}
    </>
  )
}

/** When a change of the agent itself takes effect. */
function ruleText(zone: Zone, governedSecs: number | undefined): string {
  if (zone === 'immutable_core')
    return 'Zone immutable_core: the change becomes a proposal and takes effect when two keys with admin:* approve it. The lineages of your key and of these two keys must differ.'
  if (zone === 'governed' && governedSecs !== undefined)
    return `Zone governed: the change becomes a proposal, which is applied automatically after ${governedSecs} s. Until then a key with proposals:decide can reject it.`
  return zoneRules[zone]
}

export function zoneConsequences(from: Zone, to: Zone): ChangeConsequences {
  const ended = from === 'free' ? [] : ['All other open proposals of the agent: they end as rejected.']
  const impossible =
    to === 'immutable_core'
      ? [
          'The possibility to delete, restore or erase records of the agent, or to remove edges, with any key. Personal data in the records can no longer be erased.',
        ]
      : []
  return {
    removed: [...impossible, ...ended],
    kept: [
      'All records. The zone does not affect who can read and write.',
      `In the new zone: ${zoneMeanings[to].toLowerCase()}.`,
      returnText[to],
    ],
    notAffected: [],
  }
}

const returnText: Record<Zone, string> = {
  free: 'Changing the zone back takes effect immediately.',
  governed: 'Changing the zone back is delayed as well, and can be rejected.',
  protected: 'Changing the zone back needs the approval of another key.',
  immutable_core: 'Changing the zone back needs the approval of two other keys with admin:*.',
}

export function rotationConsequences(isLeaked: boolean): ChangeConsequences {
  return {
    removed: ['The current key: the server never signs with it again. This cannot be undone.'],
    kept: [
      'Every record and its signature: they verify with the old public key.',
      isLeaked
        ? 'A signed record with the new key, which marks the old key as compromised.'
        : 'A record with the new key, signed with the old key. Verifiers that trust the old key accept the new one.',
    ],
    notAffected: isLeaked
      ? [
          'Verifiers of exports: give them the new key and the strand. With only the old key, they would accept a strand that an attacker continued with it.',
          'Checkpoints saved before the leak: only they prove the earlier content of the strand. Compare with them.',
        ]
      : [
          'Existing backups: they contain the old secret key.',
          'Exports that end before the rotation: they no longer have a checkpoint.',
        ],
  }
}

const NAMES_SHOWN = 10

/** The props of the sections of the tab. */
export interface ChangeProps {
  session: SignedIn
  status: AgentStatusResponse
  /** Undefined until it is read, and if the key cannot read it. */
  deciding: ApprovalContext | undefined
  /** The pending proposal that prevents another one. */
  pending: ProposalView | undefined
  /** Reads the status of the agent again. */
  reload: () => void
}

/** When a change takes effect, and the keys that can approve it. */
export function Rule({ session, status, deciding }: Pick<ChangeProps, 'session' | 'status' | 'deciding'>) {
  const { agent_id: agent, zone } = status
  const approvers = approversFor({ session, agent, zone, deciding })
  return (
    <div class="notice">
      <p>{ruleText(zone, deciding?.governedSecs)}</p>
      {approvers !== undefined && <p>{approversText(approvers)}</p>}
    </div>
  )
}

/** Warns if the existing keys could not approve a later change out of the chosen zone. */
export function ReturnWarning(about: ZoneInQuestion) {
  const approvers = approversFor(about)
  if (approvers === undefined || approvers.lineages >= approvers.needed) return null
  return (
    <p class="notice warn">
      With the existing keys, you could not move the agent out of that zone again:{' '}
      {approvers.needed === 1 ? 'another key' : 'two other keys'} would have to approve it. Create them first.
    </p>
  )
}

/** A link to the pending proposal, shown instead of the button. */
export function PendingProposal({ proposal }: { proposal: ProposalView }) {
  return (
    <p>
      A proposal is already pending: <a href={proposalLink(proposal.proposal_id)}>{whatText(proposal)}</a>
    </p>
  )
}

interface ZoneInQuestion {
  session: SignedIn
  agent: string
  zone: Zone
  deciding: ApprovalContext | undefined
}

function approversFor({ session: { who }, agent, zone, deciding }: ZoneInQuestion): Approvers | undefined {
  return deciding && approversOf(deciding.keys, { who, agent, zone, nowMs: Date.now() })
}

function approversText({ names, lineages, needed }: Approvers): string {
  const advice = 'Create more keys first: a key created after a proposal cannot approve it.'
  if (names.length === 0) return `No existing key can approve it. ${advice}`
  const others = names.length > NAMES_SHOWN ? ` and ${countText(names.length - NAMES_SHOWN)} others` : ''
  const list = `Possible approvers: ${names.slice(0, NAMES_SHOWN).join(', ')}${others}.`
  return lineages < needed ? `${list} These are not enough. ${advice}` : list
}
