import { useLayoutEffect, useRef } from 'preact/hooks'
import { CodePanel } from './code.js'
import type { ResponseProgress } from './send.js'

/** The response, updated while it arrives. */
export function ResponsePanel({ reading }: { reading: ResponseProgress | undefined }) {
  const area = useRef<HTMLPreElement>(null)
  const container = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (reading?.isStream === true && area.current !== null)
      area.current.scrollTop = area.current.scrollHeight
    // The page scrolls only at the end, because a page that moves with each event cannot be read.
    else if (reading?.isEnded === true) container.current?.scrollIntoView({ block: 'nearest' })
  }, [reading])
  return (
    <div ref={container} class={reading === undefined ? '' : 'result'} aria-live="polite">
      {reading !== undefined && <Head reading={reading} />}
      {reading?.head !== undefined && <Headers headers={reading.head.headers} />}
      {reading !== undefined && reading.text !== '' && (
        <CodePanel
          heading="Body"
          name="Response body"
          text={reading.text}
          isJson={reading.isJson}
          area={area}
        />
      )}
    </div>
  )
}

function Head({ reading }: { reading: ResponseProgress }) {
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
      {failure !== undefined && <span class="broken">No response: {failure}</span>}
      {isStopped && <span>Stopped</span>}
      {lacksKey && (
        <button type="button" onClick={() => document.querySelector<HTMLElement>('#key')?.focus()}>
          Enter an API key
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

/** Whether a status, or a class such as `2XX`, means success. */
export const isGood = (status: string): boolean => status.startsWith('2')

export function statusClass(status: string): string {
  if (isGood(status)) return 'good'
  return status.startsWith('5') ? 'broken' : 'wrong'
}
