import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { webCryptoJobs } from '../../../client/webcrypto.js'
import type { ReadRecord } from '../../../proof/record.js'
import { toHex } from '../../../proof/hex.js'
import { useLayoutEffect } from 'preact/hooks'
import { switchType, useAddress } from '../address.js'
import { RecordChanges } from './record-changes.js'
import { Dialog } from '../dialog.js'
import { valueOfJson } from '../json.js'
import { countText } from '../format.js'
import { lazy, Read, useLoaded } from '../load.js'
import { Button, CopyButton, Facts, Time } from '../texts.js'
import { ProveButton } from '../proof/prove-button.js'
import { agentLink, goTo } from '../../route.js'
import { BodyTree } from './body-tree.js'
import { readRows, readStrandPart, type RecordRow } from './record-row.js'
import { StateText } from './record-table.js'

const TraceSection = lazy(async () => (await import('../trace/trace-section.js')).TraceSection)

interface DrawerProps {
  service: ServiceClient
  status: AgentStatusResponse
  seq: number
  /** Called after a change that added records to the strand. */
  changed: () => void
  /** The address of a record, or of the page behind the drawer; by default those of the agent's screen. */
  linkTo?: ((seq?: number) => string) | undefined
}

interface ShownRecord {
  row: RecordRow
  record: ReadRecord
  /** Undefined on pages without TLS, where browsers do not compute hashes. */
  hash: string | undefined
}

/** The drawer of a record: its proof, body, header and changes. */
export function RecordDrawer({ service, status, seq, linkTo, changed }: DrawerProps) {
  const { agent_id: agent, record_count: headSeq } = status
  const link = linkTo ?? ((to?: number) => agentLink(agent, to))
  // A record that was written after the status was read is read with the next status.
  const exists = seq <= headSeq
  const read = useLoaded<ShownRecord | undefined>(`${agent} ${seq} ${exists}`, async (signal) => {
    if (!exists) return undefined
    const range = { fromSeq: seq, toSeq: seq, signal }
    const [{ records }, [row]] = await Promise.all([
      readStrandPart(service, agent, range),
      readRows(service, agent, range),
    ])
    const [record] = records
    if (record === undefined || row === undefined) return undefined
    const hash = globalThis.isSecureContext ? await webCryptoJobs().hash(record.leaf) : undefined
    return { record, row, hash }
  })
  const close = (): void => {
    location.hash = link()
  }
  useArrows(
    { ArrowLeft: seq > 0 ? seq - 1 : undefined, ArrowRight: seq < headSeq ? seq + 1 : undefined },
    link,
  )
  return (
    <Dialog title={`Record ${countText(seq)}`} class="drawer" close={close}>
      <div class="drawer-head">
        <h2>Record {countText(seq)}</h2>
        <nav aria-label="Neighbours">
          {seq > 0 && (
            <a href={link(seq - 1)} aria-keyshortcuts="ArrowLeft" title="Arrow key ←">
              Older
            </a>
          )}
          {seq < headSeq && (
            <a href={link(seq + 1)} aria-keyshortcuts="ArrowRight" title="Arrow key →">
              Newer
            </a>
          )}
        </nav>
        <Button text="Close" class="quiet" onClick={close} />
      </div>
      <Read of={read} what="the record">
        {(shown) =>
          shown === undefined ? (
            <p class="notice">
              Record {countText(seq)} does not exist: the last record is {countText(headSeq)}.
            </p>
          ) : (
            <Contents
              service={service}
              status={status}
              seq={seq}
              shown={shown}
              changed={() => {
                read.reload()
                changed()
              }}
            />
          )
        }
      </Read>
    </Dialog>
  )
}

/** Leads to another record by an arrow key, except where the keys move a cursor or are used in another dialog. */
function useArrows(to: Readonly<Record<string, number | undefined>>, link: (seq: number) => string): void {
  // A layout effect, so that no key is lost between the appearance of the dialog and the effect.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const { key, target, repeat, altKey, ctrlKey, metaKey, shiftKey } = event
      const seq = to[key]
      if (seq === undefined || repeat || altKey || ctrlKey || metaKey || shiftKey) return
      if (!(target instanceof Element) || target.closest('input, textarea, select') !== null) return
      if (document.querySelectorAll('dialog[open]').length > 1) return
      event.preventDefault()
      goTo(link(seq), 'replace')
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [to.ArrowLeft, to.ArrowRight, link])
}

function Contents({ service, status, seq, shown, changed }: DrawerProps & { shown: ShownRecord }) {
  const { row, record, hash } = shown
  return (
    <>
      <p class="record-line">
        <code>{row.type}</code> <Time ms={row.ms} />{' '}
        <StateText row={row} isImported={row.seq < status.imported_records} />
      </p>
      {row.type.startsWith('otel/') && <TraceSection agent={status.agent_id} row={row} />}
      <Proof key={row.state} service={service} status={status} seq={seq} record={record} />
      <Body row={row} />
      <Header record={record} hash={hash} />
      <RecordChanges status={status} row={row} record={record} reload={changed} />
    </>
  )
}

function Proof({ service, status, seq, record }: Omit<DrawerProps, 'changed'> & { record: ReadRecord }) {
  const { agent_id: agent, strand } = status
  return (
    <section class="prove" aria-labelledby="prove-title">
      <h3 id="prove-title">Proof</h3>
      <p class="muted">
        This browser computes every hash from the record up to a checkpoint signed with the agent’s key.
      </p>
      <ProveButton service={service} provable={{ agent, strand, seq, record }} name="Prove" />
    </section>
  )
}

function Body({ row: { body, state } }: { row: RecordRow }) {
  const [isRaw, setRaw] = useAddress('raw', switchType)
  if (body === undefined) {
    return (
      <section>
        <h3>Body</h3>
        <p class="notice">
          {state === 'withheld'
            ? 'The rules of the agent do not let you read this body.'
            : 'The body was erased together with its salt. The record keeps its position, hash and signature, and can still be proved.'}
        </p>
      </section>
    )
  }
  const value = valueOfJson(body)
  return (
    <section>
      <div class="section-head">
        <h3>Body</h3>
        <Button text="Raw" class="quiet" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)} />
        <CopyButton text={body} name="the body" />
      </div>
      {isRaw || value === undefined ? <pre class="raw">{body}</pre> : <BodyTree value={value} />}
    </section>
  )
}

/** The exact texts that are hashed and signed. */
function Header({ record, hash }: Pick<ShownRecord, 'record' | 'hash'>) {
  const { h, sig, sealedBy, content, header } = record
  // The salt is between the prefix of the commitment and the body (docs/FORMAT.md, Body).
  const salt = content && toHex(content.committed.subarray(PREFIX_BYTES, PREFIX_BYTES + SALT_BYTES))
  return (
    <section>
      <div class="section-head">
        <h3>Header</h3>
        <CopyButton text={h} name="the header" />
      </div>
      <pre class="raw header-text">{h}</pre>
      <Facts
        facts={{
          Hash: hash && (
            <>
              <code>{hash}</code>
              <br />
              <small class="muted">
                SHA-256(0x00 ‖ header), computed by this browser: the address of the record and its leaf in
                the tree
              </small>
            </>
          ),
          Signature:
            sig === undefined ? `Sealed: the signature of record ${sealedBy} covers it` : <code>{sig}</code>,
          'Signing key': <code>{header?.key}</code>,
          'Body commitment': <code>{header?.body}</code>,
          Salt: salt === undefined ? 'Not available without the body' : <code>{salt}</code>,
        }}
      />
    </section>
  )
}

const PREFIX_BYTES = 'strand-body/v1\n'.length
const SALT_BYTES = 16
