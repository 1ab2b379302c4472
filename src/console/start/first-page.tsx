import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ServiceError, type ServiceClient } from '../../client/index.js'
import { saveFile } from '../parts/download.js'
import { Problem } from '../parts/field.js'
import { lazy } from '../parts/lazy.js'
import { useChange } from '../parts/load.js'
import { CopyButton, ScopedButton } from '../parts/texts.js'
import { type Provable, ProveButton } from '../parts/proof/prove-button.js'
import { readStrandPart } from '../parts/records/record-row.js'
import { TailRow } from '../parts/records/tail-rows.js'
import { Tail } from '../parts/records/tail.js'
import { agentLink } from '../route.js'
import { serviceUrl } from '../parts/service-url.js'
import { type SignedIn, may } from '../parts/session.js'
import { logAgent } from '../parts/words.js'
import { waysToWrite } from './ways-to-write.js'

const NewKey = lazy(async () => (await import('../parts/new-key.js')).NewKey)

/** The collection that first records go to. */
const COLLECTION = 'first'
const READ_MS = 30_000
/** Before any record: a stream from here on tells all of them. */
const BEGINNING = '1970-01-01T00:00:00Z'
const ROWS_SHOWN = 5

/** A first record, from being written to being proved. */
export function FirstPage({ session }: { session: SignedIn }) {
  const { service, who } = session
  const [written, setWritten] = useState<Provable | undefined>(undefined)
  const mayWrite = may(who, 'records:write') && may(who, 'records:read')
  return (
    <div class="page narrow">
      <h1>A first record</h1>
      <p class="lead">
        Write something down, see it arrive, and have this browser prove that nobody can change it unnoticed.
      </p>
      {!mayWrite && (
        <p class="notice">
          This key does not write and read records: it needs <code>records:write</code> and{' '}
          <code>records:read</code>.
        </p>
      )}
      <ol class="first-steps">
        <Part title="Write it">
          <WriteForm service={service} mayWrite={mayWrite} done={setWritten} />
          <OtherWays />
        </Part>
        <Part title="See it arrive">
          {written === undefined ? (
            <p class="muted">It comes here as soon as it is on disk.</p>
          ) : (
            <Arrived service={service} />
          )}
        </Part>
        <Part title="Prove it">
          {written === undefined ? (
            <p class="muted">Its hash, its signature and its path to a signed checkpoint.</p>
          ) : (
            <ProveButton key={written.seq} service={service} provable={written} name="Verify" />
          )}
        </Part>
        <Part title="Give each program a key of its own">
          <KeyOfItsOwn session={session} />
        </Part>
        <Part title="Keep what a check needs">
          <Kit service={service} written={written} />
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
    if (record === undefined) throw new Error(`The export of ${COLLECTION} lacks record ${seq}`)
    done({ agent: COLLECTION, strand, seq, record })
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void run(write)
      }}
    >
      <label for="first-text">What is to be kept</label>
      <input
        id="first-text"
        class="long-input"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="muted">
        It becomes a record of the agent <code>{COLLECTION}</code>, which is made with its key by the first
        write.
      </p>
      <Problem text={problem} />
      <button type="submit" class="primary" disabled={isBusy || !mayWrite}>
        Write the record
      </button>
    </form>
  )
}

function OtherWays() {
  return (
    <details class="ways">
      <summary>From a program</summary>
      <p class="muted">
        Put a key into <code>KEY</code>. Programs that collect logs and events send to <code>/v1/ingest</code>
        . <a href="docs">Every operation</a>
      </p>
      {waysToWrite(serviceUrl(), COLLECTION).map(({ name, text }) => (
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

/** The records of the collection, the newest first, as its stream tells them. */
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

/** A key that may do little, in place of the root key, which may do everything. */
function KeyOfItsOwn({ session }: { session: SignedIn }) {
  const { kind } = session.who
  const [isMaking, setMaking] = useState(false)
  const [isMade, setMade] = useState(false)
  return (
    <>
      <p class="muted">
        It says what the program may do, to which agents and until when, and it can be taken back. A program
        that writes needs <code>records:write</code> alone, one that collects logs <code>ingest</code>: both
        append and no more, so a stolen key cannot delete or erase what was written.
      </p>
      <ScopedButton allowed={may(session.who, 'admin:*')} scope="admin:*" onClick={() => setMaking(true)}>
        New key
      </ScopedButton>
      {isMade && (
        <p role="status">
          {kind === 'root' ? 'Now put the root key away: it may do everything. ' : ''}
          The key is on the page <a href="#/keys">Keys</a>.
        </p>
      )}
      {isMaking && <NewKey session={session} made={() => setMade(true)} close={() => setMaking(false)} />}
    </>
  )
}

/** What somebody needs who does not trust this server: to be kept elsewhere. */
function Kit({ service, written }: { service: ServiceClient; written: Provable | undefined }) {
  const { problem, run } = useChange()
  const save = async (): Promise<void> => {
    const { strand, public_key: publicKey } = await service.agent(COLLECTION).status()
    const checkpoint = await service.checkpoint(COLLECTION)
    const log = await trustOfLog(service)
    const kit = { agent: COLLECTION, strand, public_key: publicKey, checkpoint, log }
    saveFile(`${COLLECTION}-trust.json`, `${JSON.stringify(kit, null, 2)}\n`)
  }
  return (
    <>
      <p class="muted">
        The public keys of this strand and of the server’s log, which names the heads of all strands, and a
        checkpoint of each as it is now. Kept where this server cannot reach it, it shows later whether
        anything was changed: on the page <a href="#/verify">Verify</a>, by <code>strandfast verify</code>, or
        by <code>verify.py</code>, which shares no code with the server and is short enough to be read.
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

/** Where the verifier in Python is served, which is part of no script. */
function verifier(): string {
  const named = document.querySelector<HTMLMetaElement>('meta[name="verifier"]')?.content
  if (named === undefined) throw new Error('The page does not name its verifier')
  return named
}

/** The same of the server's log; undefined where the server keeps none. */
async function trustOfLog(service: ServiceClient) {
  try {
    const checkpoint = await service.log.checkpoint()
    const { strand, public_key: publicKey } = await service.agent(logAgent).status()
    return { strand, public_key: publicKey, checkpoint }
  } catch (error) {
    if (error instanceof ServiceError && (error.status === 404 || error.status === 403)) return undefined
    throw error
  }
}
