import { useState } from 'preact/hooks'
import { ServiceError } from '../../client/index.js'
import { CardTable } from '../parts/card-table.js'
import { saveFile } from '../parts/download.js'
import { countText } from '../parts/format.js'
import { Facts } from '../parts/facts.js'
import { Read, useLoaded } from '../parts/load.js'
import { Result } from '../parts/result.js'
import { CopyButton, Empty, Hash, Key, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { logAgent } from '../parts/words.js'
import { type Witnessing, forgetWitnessed, witness } from './witness.js'

/** The log of all strands' heads, which this browser watches. */
export function LogPage({ session: { service } }: { session: SignedIn }) {
  const read = useLoaded<Witnessing | 'none'>('log', (signal) =>
    witness(service, { nowMs: Date.now(), signal }).catch(noneWhereOff),
  )
  return (
    <div class="page narrow">
      <h1>Log</h1>
      <p class="lead">
        The server writes the head of every strand into one log. Whoever keeps a checkpoint of the log can
        show later that no strand was cut or rewritten since. This browser does: it keeps the checkpoint of
        each visit, and checks that the log has only grown.
      </p>
      <Read of={read} what="the log">
        {(found) => <Found found={found} reload={read.reload} />}
      </Read>
    </div>
  )
}

/** @throws what else went wrong */
function noneWhereOff(error: unknown): 'none' {
  if (error instanceof ServiceError && error.code === 'not_found') return 'none'
  throw error
}

function Found({ found, reload }: { found: Witnessing | 'none'; reload: () => void }) {
  if (found === 'none') {
    return (
      <Empty title="This server keeps no log">
        Start it with <code>SERVICE_LOG_INTERVAL_SECS</code> above 0 to have one.
      </Empty>
    )
  }
  const { verdict, kept, checkpoint } = found
  return (
    <>
      <Result verdict={verdict} />
      {!verdict.ok && kept !== undefined && (
        <Broken kept={kept.checkpoint} now={checkpoint} reload={reload} />
      )}
      <section>
        <div class="section-head">
          <h2>Checkpoint</h2>
          <CopyButton text={checkpoint} name="the checkpoint" />
        </div>
        <pre class="raw" tabIndex={0} aria-label="Checkpoint">
          {checkpoint}
        </pre>
        <div class="buttons">
          <button type="button" onClick={() => saveFile('log-checkpoint.txt', checkpoint)}>
            Download it
          </button>
          <button type="button" class="quiet" onClick={reload}>
            Look again
          </button>
          <a href={agentLink(logAgent, 'proof')}>Check the whole log</a>
        </div>
      </section>
      {kept !== undefined && verdict.ok && <Kept kept={kept} />}
    </>
  )
}

function Broken({ kept, now, reload }: { kept: string; now: string; reload: () => void }) {
  const [isSaved, setSaved] = useState(false)
  return (
    <div class="notice bad">
      <p>
        Two checkpoints that do not fit each other, both signed, show to anybody that the log was not only
        added to. Keep both before anything else.
      </p>
      <div class="buttons">
        <button
          type="button"
          class="primary"
          onClick={() => {
            saveFile('log-checkpoint-kept.txt', kept)
            saveFile('log-checkpoint-now.txt', now)
            setSaved(true)
          }}
        >
          Download both
        </button>
        <button
          type="button"
          disabled={!isSaved}
          onClick={() => {
            forgetWitnessed()
            reload()
          }}
        >
          Forget the kept one and begin anew
        </button>
      </div>
    </div>
  )
}

function Kept({ kept: { strand, publicKey, visits } }: { kept: NonNullable<Witnessing['kept']> }) {
  return (
    <section>
      <h2>Seen by this browser</h2>
      <Facts
        facts={{
          Strand: <Hash hex={strand} name="the strand of the log" />,
          Key: <Key hex={publicKey} name="the key of the log" />,
        }}
      />
      <CardTable
        name="Visits"
        rows={visits}
        keyOf={({ atMs }) => atMs}
        head={['Visit', ({ atMs }) => <Time ms={atMs} />]}
        numbers={['Records']}
        cells={{ Records: ({ size }) => countText(size) }}
      />
    </section>
  )
}
