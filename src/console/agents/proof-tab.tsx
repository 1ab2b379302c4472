import { useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../client/index.js'
import { fileName, saveFile } from '../parts/download.js'
import { explain } from '../parts/explain.js'
import { ExportDialog } from '../parts/export-dialog.js'
import { Form, Problem, TextInput } from '../parts/field.js'
import { counted, countText, recordsText } from '../parts/format.js'
import { useChange, useTask } from '../parts/load.js'
import { fails, FocusedResult, holds, ProgressLine, type Verdict } from '../parts/result.js'
import { Button, Time } from '../parts/texts.js'
import { type StrandVerdict, checkStrand } from '../parts/proof/check-strand.js'
import { Findings } from '../parts/proof/findings.js'
import {
  type StoredCheck,
  storeCheck,
  loadCheck,
  storeTrustedKey,
  loadTrustedKey,
} from '../parts/proof/stored-check.js'

interface Progress {
  records: number
  of: number
  perSecond: number
}

/** Checks a whole strand in this browser, and later only the records added since. */
export function ProofTab({ service, status }: { service: ServiceClient; status: AgentStatusResponse }) {
  const { strand } = status
  const [key, setKey] = useState(() => loadTrustedKey(strand))
  const publicKey = key.trim().toLowerCase()
  const isKeyWrong = publicKey !== '' && !/^[0-9a-f]{64}$/.test(publicKey)
  const { kept, progress, verdict, verify, cancel } = useStrandCheck(service, status)
  // An earlier check with another trusted key proves nothing about this key.
  const usable = kept !== undefined && kept.trusted === publicKey ? kept : undefined
  const isBusy = progress !== undefined
  const found = verdict?.found
  return (
    <div class="proof">
      <p class="lead">This browser reads the strand and verifies every hash, link and signature itself.</p>
      <Form
        submit={() => {
          if (!isKeyWrong) void verify(publicKey, usable)
        }}
      >
        <KeyField value={key} isWrong={isKeyWrong} set={setKey} />
        {usable !== undefined && (
          <p class="notice">
            {recordsText(usable.size - 1)} were checked in this browser on <Time ms={usable.checkedAtMs} />.
            Only records added since are checked now.
          </p>
        )}
        <div class="buttons">
          <Button text="Verify" type="submit" class="primary" disabled={isBusy || isKeyWrong} />
          {usable !== undefined && (
            <button type="button" disabled={isBusy} onClick={() => void verify(publicKey, undefined)}>
              Check everything again
            </button>
          )}
          {isBusy && <Button text="Cancel" onClick={cancel} />}
        </div>
      </Form>
      {progress !== undefined && (
        <ProgressLine name="Records checked" done={progress.records} of={progress.of}>
          {countText(progress.records)} of {progress.of === 0 ? '…' : countText(progress.of)},{' '}
          {countText(Math.round(progress.perSecond))} per second
        </ProgressLine>
      )}
      <FocusedResult verdict={verdict?.shown}>
        {found?.ok === true && (
          <Findings found={found.found} isKeyTrusted={found.kept.trusted !== ''} since={found.since} />
        )}
      </FocusedResult>
      <Downloads service={service} status={status} />
    </div>
  )
}

function KeyField(props: { value: string; isWrong: boolean; set: (value: string) => void }) {
  const { value, isWrong, set } = props
  return (
    <>
      <label for="trusted">Public key that you trust</label>
      <TextInput
        id="trusted"
        class="long-input"
        placeholder="64 hex digits, from a source you trust"
        value={value}
        set={set}
        aria-describedby="trusted-note"
        aria-invalid={isWrong}
      />
      <p id="trusted-note" class={isWrong ? 'problem' : 'muted'}>
        {isWrong
          ? 'Expected 64 hex digits, or an empty field'
          : 'Without a key, the check only proves that the strand is consistent with itself. Stored in this browser.'}
      </p>
    </>
  )
}

/** The state of a check, and its result. */
function useStrandCheck(service: ServiceClient, { agent_id: agent, strand }: AgentStatusResponse) {
  const [kept, setKept] = useState(() => loadCheck(strand))
  const [progress, setProgress] = useState<Progress | undefined>(undefined)
  const [verdict, setVerdict] = useState<{ shown: Verdict; found: StrandVerdict | undefined } | undefined>(
    undefined,
  )
  const { begin, stop } = useTask()
  const verify = async (trusted: string, from: StoredCheck | undefined): Promise<void> => {
    const signal = begin()
    setVerdict(undefined)
    setProgress({ records: 0, of: 0, perSecond: 0 })
    const startedAtMs = performance.now()
    const onProgress = ({ records, of }: { records: number; of: number }): void =>
      setProgress({ records, of, perSecond: (records / (performance.now() - startedAtMs)) * 1_000 })
    try {
      const publicKey = trusted === '' ? undefined : trusted
      const check = { service, agent, strand, publicKey, kept: from, onProgress, signal, nowMs: Date.now }
      const found = await checkStrand(check)
      storeTrustedKey(strand, trusted)
      if (found.ok) {
        storeCheck(strand, found.kept)
        setKept(found.kept)
      }
      setVerdict({ shown: verdictOf(agent, found), found })
    } catch (error) {
      const shown = fails(signal.aborted ? 'the check was stopped' : explain(error))
      setVerdict({ shown, found: undefined })
    }
    setProgress(undefined)
  }
  return { kept, progress, verdict, verify, cancel: stop }
}

function verdictOf(agent: string, found: StrandVerdict): Verdict {
  if (!found.ok) {
    const record = found.seq === undefined ? '' : `record ${found.seq} of `
    return fails(`${record}${agent}: ${found.reason}`)
  }
  const { lastSeq } = found.found
  const text =
    found.since === undefined
      ? `all ${recordsText(lastSeq)} of ${agent}`
      : `${counted(found.kept.size - found.since.size, 'record')} added to ${agent} since the last check, up to ${lastSeq}`
  return holds(text, found.kept.trusted !== '')
}

function Downloads({ service, status }: { service: ServiceClient; status: AgentStatusResponse }) {
  const { agent_id: agent } = status
  const [isExporting, setExporting] = useState(false)
  const { problem, run } = useChange()
  const saveCheckpoint = async (): Promise<void> =>
    saveFile(`${fileName(agent)}-checkpoint.txt`, await service.checkpoint(agent))
  return (
    <section>
      <h2>Verify elsewhere</h2>
      <p class="muted">
        Store a checkpoint where this server cannot reach it. A strand that is truncated or rewritten later no
        longer matches it.
      </p>
      <div class="buttons">
        <Button text="Download an export" onClick={() => setExporting(true)} />
        <Button text="Download a checkpoint" onClick={() => void run(saveCheckpoint)} />
      </div>
      <Problem text={problem} />
      {isExporting && <ExportDialog service={service} status={status} close={() => setExporting(false)} />}
    </section>
  )
}
