import { useState } from 'preact/hooks'
import { ServiceError } from '../../client/index.js'
import { CardTable } from '../parts/card-table.js'
import { saveFile } from '../parts/download.js'
import { countText } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { Result } from '../parts/result.js'
import { Button, CopyButton, Empty, Facts, Hash, Key, Time } from '../parts/texts.js'
import { agentLink } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { logAgent } from '../parts/labels.js'
import { type WitnessResult, clearWitness, witness } from './witness.js'

/** The log of the heads of all strands, for which this browser is a witness. */
export function LogPage({ session: { service } }: { session: SignedIn }) {
  const read = useLoaded<WitnessResult | 'none'>('log', (signal) =>
    witness(service, { nowMs: Date.now(), signal }).catch(noneWhereOff),
  )
  return (
    <div class="page narrow">
      <h1>Log</h1>
      <p class="lead">
        The server writes the head of every strand into one log. A saved checkpoint of the log proves later
        that no strand was truncated or rewritten since. This browser stores the checkpoint of each visit and
        checks that the log is append-only.
      </p>
      <Read of={read} what="the log">
        {(found) => <Found found={found} reload={read.reload} />}
      </Read>
    </div>
  )
}

/** Maps the error of a server without a log to `none`, and rethrows any other error. */
function noneWhereOff(error: unknown): 'none' {
  if (error instanceof ServiceError && error.code === 'not_found') return 'none'
  throw error
}

function Found({ found, reload }: { found: WitnessResult | 'none'; reload: () => void }) {
  if (found === 'none') {
    return (
      <Empty title="This server has no log">
        Set <code>SERVICE_LOG_INTERVAL_SECS</code> above 0 to enable it.
      </Empty>
    )
  }
  const { verdict, kept, checkpoint } = found
  return (
    <>
      <Result verdict={verdict} />
      {verdict.outcome === 'failed' && kept !== undefined && (
        <Inconsistent kept={kept.checkpoint} now={checkpoint} reload={reload} />
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
          <Button text="Download" onClick={() => saveFile('log-checkpoint.txt', checkpoint)} />
          <Button text="Check again" class="quiet" onClick={reload} />
          <a href={agentLink(logAgent, 'proof')}>Check the whole log</a>
        </div>
      </section>
      {kept !== undefined && verdict.outcome !== 'failed' && <Kept kept={kept} />}
    </>
  )
}

function Inconsistent({ kept, now, reload }: { kept: string; now: string; reload: () => void }) {
  const [isSaved, setSaved] = useState(false)
  return (
    <div class="notice bad">
      <p>
        Two signed checkpoints that contradict each other prove to anyone that the log is not append-only.
        Save both before you do anything else.
      </p>
      <div class="buttons">
        <Button
          text="Download both"
          class="primary"
          onClick={() => {
            saveFile('log-checkpoint-kept.txt', kept)
            saveFile('log-checkpoint-now.txt', now)
            setSaved(true)
          }}
        />
        <Button
          text="Discard the stored checkpoint and start again"
          disabled={!isSaved}
          onClick={() => {
            clearWitness()
            reload()
          }}
        />
      </div>
    </div>
  )
}

function Kept({ kept: { strand, publicKey, visits } }: { kept: NonNullable<WitnessResult['kept']> }) {
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
        cells={{ Records: ({ size }) => countText(size - 1) }}
      />
    </section>
  )
}
