import { useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../client/index.js'
import { Dialog } from './dialog.js'
import { fileName, gather, saveFile } from './download.js'
import { explain } from './explain.js'
import { Field, Form, Tick } from './field.js'
import { bytesText, recordsText } from './format.js'
import { useTask } from './load.js'
import { Button } from './texts.js'

type ExportState =
  | { kind: 'idle' }
  | { kind: 'busy'; bytes: number }
  | { kind: 'done' }
  | { kind: 'failed'; message: string }

/** A dialog that saves a range of a strand as an export, which can be verified elsewhere. */
export function ExportDialog(props: {
  service: ServiceClient
  status: AgentStatusResponse
  /** The initial range; the whole strand by default. */
  range?: { from: number; to: number } | undefined
  close: () => void
}) {
  const { service, status, range, close } = props
  const { agent_id: agent, record_count: headSeq } = status
  const [from, setFrom] = useState(String(range?.from ?? 0))
  const [to, setTo] = useState(String(range?.to ?? headSeq))
  const [isPacked, setPacked] = useState(false)
  const { state, save, stop } = useSaving(service, agent)
  const seq = { type: 'number', required: true, min: 0, max: headSeq, step: 1 } as const
  return (
    <Dialog title="Export" class="dialog" close={close}>
      <h2>Export records of {agent}</h2>
      <p>
        A file with every record, every signature and a checkpoint. It can be verified without this server: on{' '}
        <a href="#/verify">Verify</a>, or with <code>strandfast verify</code>.
      </p>
      <Form submit={() => save({ from: Number(from), to: Number(to), isPacked })}>
        <div class="filter-line">
          <Field {...seq} name="First record" value={from} set={setFrom} />
          <Field {...seq} name="Last record" value={to} set={setTo} />
        </div>
        <Tick isOn={isPacked} set={setPacked}>
          Compressed (.gz)
        </Tick>
        {Number(from) > 0 && (
          <p class="muted">
            An export that does not begin at record 0 proves nothing about the records before it.
          </p>
        )}
        <p role="status">{stateText(state, Number(from), Number(to))}</p>
        <div class="buttons">
          <Button text="Save file" type="submit" class="primary" disabled={state.kind === 'busy'} />
          <button type="button" onClick={state.kind === 'busy' ? stop : close}>
            {state.kind === 'busy' ? 'Stop' : 'Close'}
          </button>
        </div>
      </Form>
    </Dialog>
  )
}

interface Saving {
  from: number
  to: number
  isPacked: boolean
}

function useSaving(service: ServiceClient, agent: string) {
  const [state, setState] = useState<ExportState>({ kind: 'idle' })
  const { begin, stop } = useTask()
  const save = async ({ from, to, isPacked }: Saving): Promise<void> => {
    const signal = begin()
    setState({ kind: 'busy', bytes: 0 })
    try {
      const stream = await service.exportStrand({ agent, fromSeq: from, toSeq: to, signal })
      const coded = isPacked ? stream.pipeThrough(new GzipStream()) : stream
      const content = await gather(coded, { signal, onBytes: (bytes) => setState({ kind: 'busy', bytes }) })
      saveFile(`${fileName(agent)}-${from}-${to}.ndjson${isPacked ? '.gz' : ''}`, content)
      setState({ kind: 'done' })
    } catch (error) {
      setState(signal.aborted ? { kind: 'idle' } : { kind: 'failed', message: explain(error) })
    }
  }
  return { state, save, stop }
}

/** Wraps CompressionStream, because the DOM's types do not allow piping a byte stream through it. */
class GzipStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>

  constructor() {
    const compressor = new CompressionStream('gzip')
    const writer = compressor.writable.getWriter()
    this.readable = compressor.readable
    this.writable = new WritableStream({
      write: (bytes) => writer.write(new Uint8Array(bytes)),
      close: () => writer.close(),
      abort: (reason) => writer.abort(reason),
    })
  }
}

function stateText(state: ExportState, from: number, to: number): string {
  switch (state.kind) {
    case 'idle':
      return from <= to ? recordsText(to, from) : 'The last record is before the first'
    case 'busy':
      return `${bytesText(state.bytes)} so far…`
    case 'done':
      return 'Saved'
    case 'failed':
      return state.message
  }
}
