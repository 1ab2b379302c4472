import { useState } from 'preact/hooks'
import type { VerifiedExport } from '../../client/index.js'
import { explain } from '../parts/explain.js'
import { Field } from '../parts/field.js'
import { bytesText, countText } from '../parts/format.js'
import { useTask } from '../parts/load.js'
import { fails, FocusedResult, ProgressLine, type Verdict } from '../parts/result.js'
import { type FileTrust, checkFile, readSavedTrust, type SavedTrust } from './check-file.js'
import { Findings } from '../parts/proof/findings.js'
import { Button } from '../parts/texts.js'

interface Outcome {
  verdict: Verdict
  found?: VerifiedExport | undefined
}

/** Verifies an export, a checkpoint or a proof in this browser, without signing in. */
export function VerifyPage() {
  const [trust, setTrust] = useState({ publicKey: '', strand: '', kept: '' })
  const [file, setFile] = useState<File | undefined>(undefined)
  const [records, setRecords] = useState<number | undefined>(undefined)
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined)
  const [imported, setImported] = useState<SavedTrust | undefined>(undefined)
  const { begin, stop, isLast } = useTask()
  const open = async (chosen: File): Promise<void> => {
    const found = await readSavedTrust(chosen).catch(() => undefined)
    setImported(found)
    if (found === undefined) return check(chosen)
    stop()
    setTrust(found.trust)
    setFile(undefined)
    setOutcome(undefined)
  }
  const check = async (chosen: File): Promise<void> => {
    const signal = begin()
    setFile(chosen)
    setOutcome(undefined)
    setRecords(0)
    const found = await checked(chosen, { trust, signal, onProgress: setRecords })
    if (!isLast(signal)) return
    setOutcome(found)
    setRecords(undefined)
  }
  return (
    <div class="page narrow">
      <h1>Verify</h1>
      <p class="lead">
        Verify an export, a checkpoint or a proof. The file does not leave this browser, and you need no API
        key. If you have a file of saved keys and checkpoints, drop it first.
      </p>
      <Drop check={(chosen) => void open(chosen)} />
      <p role="status" class={imported === undefined ? 'hidden' : 'notice'}>
        {imported !== undefined &&
          `The key, the strand and the checkpoint of ${imported.agent} are filled in below. Now drop an export of this agent`}
      </p>
      <Trust trust={trust} set={setTrust} />
      {file !== undefined && (
        <Checking file={file} records={records} again={() => void check(file)} cancel={stop} />
      )}
      <FocusedResult verdict={outcome?.verdict}>
        {outcome?.found !== undefined && (
          <Findings
            found={outcome.found}
            isKeyTrusted={outcome.verdict.outcome === 'verified'}
            since={undefined}
          />
        )}
      </FocusedResult>
    </div>
  )
}

/** The progress of a check, and a button to repeat it. */
function Checking(props: {
  file: File
  /** The records checked so far; undefined after the end of the check. */
  records: number | undefined
  again: () => void
  cancel: () => void
}) {
  const { file, records, again, cancel } = props
  return (
    <>
      <div class="buttons">
        <Button text={`Check ${file.name} again`} disabled={records !== undefined} onClick={again} />
        {records !== undefined && <Button text="Cancel" onClick={cancel} />}
      </div>
      {records !== undefined && (
        <ProgressLine name="Records checked" done={records} of={undefined}>
          {countText(records)} records so far, of {bytesText(file.size)}
        </ProgressLine>
      )}
    </>
  )
}

async function checked(
  file: File,
  how: { trust: FileTrust; signal: AbortSignal; onProgress: (records: number) => void },
): Promise<Outcome> {
  try {
    return await checkFile(file, how)
  } catch (error) {
    return { verdict: fails(how.signal.aborted ? 'the check was stopped' : explain(error)) }
  }
}

function Drop({ check }: { check: (file: File) => void }) {
  const [isOver, setOver] = useState(false)
  return (
    <div
      class={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        const dropped = event.dataTransfer?.files[0]
        if (dropped !== undefined) check(dropped)
      }}
    >
      <label for="file">Drop a file here, or choose one</label>
      <input
        id="file"
        type="file"
        onChange={(event) => {
          const chosen = event.currentTarget.files?.[0]
          if (chosen !== undefined) check(chosen)
        }}
      />
    </div>
  )
}

function Trust({ trust, set }: { trust: FileTrust; set: (trust: FileTrust) => void }) {
  return (
    <details class="trust" open>
      <summary>Trusted keys and checkpoints</summary>
      <p class="muted">
        Without a key, an export is only checked for consistency with itself, and anyone can create one that
        passes.
      </p>
      <Field
        name="Public key that you trust"
        class="long-input"
        placeholder="64 hex digits"
        value={trust.publicKey}
        set={(publicKey) => set({ ...trust, publicKey })}
      />
      <Field
        name="Strand that you expect"
        class="long-input"
        placeholder="64 hex digits"
        value={trust.strand}
        set={(strand) => set({ ...trust, strand })}
      />
      <label for="file-kept">Checkpoint that you have saved</label>
      <textarea
        id="file-kept"
        rows={3}
        spellcheck={false}
        placeholder="strandfast/…"
        value={trust.kept}
        onInput={(event) => set({ ...trust, kept: event.currentTarget.value })}
      />
    </details>
  )
}
