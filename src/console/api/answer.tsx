import { useLayoutEffect, useRef } from 'preact/hooks'
import { CodePanel } from './code.js'
import type { AnswerProgress } from './send.js'

/** What came back, while it comes. */
export function AnswerOf({ reading }: { reading: AnswerProgress | undefined }) {
  const area = useRef<HTMLPreElement>(null)
  const place = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (reading?.isStream === true && area.current !== null)
      area.current.scrollTop = area.current.scrollHeight
    // A page that moved with each event of a stream could not be read.
    else if (reading?.isEnded === true) place.current?.scrollIntoView({ block: 'nearest' })
  }, [reading])
  return (
    <div ref={place} class={reading === undefined ? '' : 'result'} aria-live="polite">
      {reading !== undefined && <Head reading={reading} />}
      {reading?.head !== undefined && <Headers headers={reading.head.headers} />}
      {reading !== undefined && reading.text !== '' && (
        <CodePanel
          heading="Body"
          name="Body of the answer"
          text={reading.text}
          isJson={reading.isJson}
          area={area}
        />
      )}
    </div>
  )
}

function Head({ reading }: { reading: AnswerProgress }) {
  const { head, failure, isStopped, lacksKey, characters, tookMs } = reading
  const tookText = `${Math.round(tookMs)} ms`
  return (
    <p>
      {head !== undefined && (
        <>
          <b class={`code-status ${statusClass(String(head.status))}`}>
            {head.status} {head.statusText}
          </b>
          <span class="muted">
            {characters === 0 ? tookText : `${tookText}, ${characters.toLocaleString()} characters`}
          </span>
        </>
      )}
      {head === undefined && failure === undefined && !isStopped && 'Sending…'}
      {failure !== undefined && <span class="broken">No answer: {failure}</span>}
      {isStopped && <span>Stopped</span>}
      {lacksKey && (
        <button type="button" onClick={() => document.querySelector<HTMLElement>('#key')?.focus()}>
          Type an API key
        </button>
      )}
    </p>
  )
}

function Headers({ headers }: { headers: readonly [string, string][] }) {
  return (
    <details>
      <summary>Headers</summary>
      <dl>
        {headers.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
}

/** Whether a status, or its class as `2XX`, says that the request was carried out. */
export const isGood = (status: string): boolean => status.startsWith('2')

/** How the number of a status is shown. */
export function statusClass(status: string): string {
  if (isGood(status)) return 'good'
  return status.startsWith('5') ? 'broken' : 'wrong'
}
