import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ServiceError, type ServiceClient } from '../../client/index.js'
import { saveFile } from '../parts/download.js'
import { Form, Problem } from '../parts/field.js'
import { lazy, useChange } from '../parts/load.js'
import { Button, CopyButton, ScopedButton } from '../parts/texts.js'
import { type Provable, ProveButton } from '../parts/proof/prove-button.js'
import { readStrandPart } from '../parts/records/record-row.js'
import { TailRow } from '../parts/records/tail-rows.js'
import { Tail } from '../parts/records/tail.js'
import { agentLink } from '../route.js'
import { serviceUrl } from '../parts/service-url.js'
import { type SignedIn, hasScope } from '../parts/session.js'
import { logAgent } from '../parts/labels.js'
import { writeExamples } from './write-examples.js'

const NewKey = lazy(async () => (await import('../parts/new-key.js')).NewKey)

/** The collection that first records go to. */
const COLLECTION = 'first'
const READ_MS = 30_000
/** Earlier than any record, so that a stream from here on has all of them. */
const BEGINNING = '1970-01-01T00:00:00Z'
const ROWS_SHOWN = 5

/** Guides through a first record: write it, see it arrive, and prove it. */
export function FirstPage({ session }: { session: SignedIn }) {
  const { service, who } = session
  const [written, setWritten] = useState<Provable | undefined>(undefined)
  const mayWrite = hasScope(who, 'records:write') && hasScope(who, 'records:read')
  return (
    <div class="page narrow">
      <h1>First record</h1>
      <p class="lead">
        Write a record, see it arrive, and let this browser prove that it cannot be changed without detection.
      </p>
      {!mayWrite && (
        <p class="notice">
          This key cannot write and read records: it needs <code>records:write</code> and{' '}
          <code>records:read</code>.
        </p>
      )}
      <ol class="first-steps">
        <Part title="Write a record">
          <WriteForm service={service} mayWrite={mayWrite} done={setWritten} />
          <Examples />
        </Part>
        <Part title="See the record arrive">
          {written === undefined ? (
            <p class="muted">The record appears here as soon as it is on disk.</p>
          ) : (
            <Arrived service={service} />
          )}
        </Part>
        <Part title="Prove the record">
          {written === undefined ? (
            <p class="muted">The hash, the signature and the path to a signed checkpoint.</p>
          ) : (
            <ProveButton key={written.seq} service={service} provable={written} name="Verify" />
          )}
        </Part>
        <Part title="Give each program its own key">
          <ProgramKey session={session} />
        </Part>
        <Part title="Save keys and checkpoints">
          <TrustFile service={service} written={written} />
        </Part>
      </ol>
    </div>
  )
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <li>
      <h2>{title}</h2>
      {children}
    </li>
  )
}

function WriteForm(props: { service: ServiceClient; mayWrite: boolean; done: (provable: Provable) => void }) {
  const { service, mayWrite, done } = props
  const [text, setText] = useState('It rained in the morning')
  const { isBusy, problem, run } = useChange()
  const write = async (): Promise<void> => {
    const { seq } = await service.collection(COLLECTION).write({ text })
    const range = { fromSeq: seq, toSeq: seq, signal: AbortSignal.timeout(READ_MS) }
    const { records, strand } = await readStrandPart(service, COLLECTION, range)
    const [record] = records
    if (record === undefined) throw new Error(`Record ${seq} is missing in the export of ${COLLECTION}`)
    done({ agent: COLLECTION, strand, seq, record })
  }
  return (
    <Form submit={() => run(write)}>
      <label for="first-text">Text of the record</label>
      <input
        id="first-text"
        class="long-input"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="muted">
        It becomes a record of the agent <code>{COLLECTION}</code>. The first write creates the agent and its
        key.
      </p>
      <Problem text={problem} />
      <Button text="Write record" type="submit" class="primary" disabled={isBusy || !mayWrite} />
    </Form>
  )
}

function Examples() {
  return (
    <details class="write-examples">
      <summary>From a program</summary>
      <p class="muted">
        Put a key into <code>KEY</code>. Programs that collect logs and events send to <code>/v1/ingest</code>
        . <a href="docs">All operations</a>
      </p>
      {writeExamples(serviceUrl(), COLLECTION).map(({ name, text }) => (
        <section key={name}>
          <div class="section-head">
            <h3>{name}</h3>
            <CopyButton text={text} name={`the lines for ${name}`} />
          </div>
          <pre class="raw" tabIndex={0} aria-label={name}>
            {text}
          </pre>
        </section>
      ))}
    </details>
  )
}

/** The records of the collection, newest first, from its stream. */
function Arrived({ service }: { service: ServiceClient }) {
  const tail = useMemo(() => new Tail(service, COLLECTION), [service])
  useEffect(() => {
    tail.begin({ since: BEGINNING, field: '' })
    return () => tail.close()
  }, [tail])
  const rows = tail.blocks.value.flatMap((block) => block.rows).slice(0, ROWS_SHOWN)
  return (
    <>
      <ol class="live-rows" aria-label="Records that have arrived">
        {rows.map((row) => (
          <TailRow key={row.id} row={row} isPretty={false} ofMany={false} />
        ))}
      </ol>
      <p>
        <a href={agentLink(COLLECTION)}>All records of {COLLECTION}</a>
      </p>
    </>
  )
}

/** Creates a key with few permissions, to be used instead of the root key. */
function ProgramKey({ session }: { session: SignedIn }) {
  const { kind } = session.who
  const [isCreating, setCreating] = useState(false)
  const [isCreated, setCreated] = useState(false)
  return (
    <>
      <p class="muted">
        A key limits what the program can do, with which agents and until when, and you can delete it at any
        time. A program that writes needs only <code>records:write</code>, one that collects logs only{' '}
        <code>ingest</code>. Both scopes only append, so a stolen key cannot delete or erase records.
      </p>
      <ScopedButton
        text="New key"
        allowed={hasScope(session.who, 'admin:*')}
        scope="admin:*"
        onClick={() => setCreating(true)}
      />
      {isCreated && (
        <p role="status">
          {kind === 'root' ? 'Now store the root key in a safe place: it has all permissions. ' : ''}
          The new key is listed under <a href="#/keys">Keys</a>.
        </p>
      )}
      {isCreating && (
        <NewKey session={session} created={() => setCreated(true)} close={() => setCreating(false)} />
      )}
    </>
  )
}

/** Saves the keys and checkpoints with which records can be verified without trusting this server. */
function TrustFile({ service, written }: { service: ServiceClient; written: Provable | undefined }) {
  const { problem, run } = useChange()
  const save = async (): Promise<void> => {
    const { strand, public_key: publicKey } = await service.agent(COLLECTION).status()
    const checkpoint = await service.checkpoint(COLLECTION)
    const log = await logTrust(service)
    const content = { agent: COLLECTION, strand, public_key: publicKey, checkpoint, log }
    saveFile(`${COLLECTION}-trust.json`, `${JSON.stringify(content, null, 2)}\n`)
  }
  return (
    <>
      <p class="muted">
        The file has the public keys and current checkpoints of this strand and of the server’s log, which
        contains the heads of all strands. Store it where this server cannot reach it. Later it shows whether
        records were changed: on the page <a href="#/verify">Verify</a>, with <code>strandfast verify</code>,
        or with <code>verify.py</code>, which shares no code with the server and is short enough to review.
      </p>
      <button type="button" disabled={written === undefined} onClick={() => void run(save)}>
        Download keys and checkpoints
      </button>{' '}
      <a href={verifier()} download="verify.py">
        Download verify.py
      </a>
      <Problem text={problem} />
    </>
  )
}

/** The address of verify.py, which the page names in a meta element. */
function verifier(): string {
  const named = document.querySelector<HTMLMetaElement>('meta[name="verifier"]')?.content
  if (named === undefined) throw new Error('The page has no address for verify.py')
  return named
}

/** Key and checkpoint of the server's log; undefined if the server has no log or the key cannot read it. */
async function logTrust(service: ServiceClient) {
  try {
    const checkpoint = await service.log.checkpoint()
    const { strand, public_key: publicKey } = await service.agent(logAgent).status()
    return { strand, public_key: publicKey, checkpoint }
  } catch (error) {
    if (error instanceof ServiceError && (error.status === 404 || error.status === 403)) return undefined
    throw error
  }
}
