import type { TargetedToggleEvent } from 'preact'
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useTask } from '../parts/load.js'
import { CodePanel } from './code.js'
import { Api, apiKey, consoleKey, exampleAgent } from './context.js'
import { follow, type Operation, type Parameter } from './document.js'
import {
  addressOf,
  choicesOf,
  curlText,
  firstDraft,
  headersOf,
  needsKey,
  type RequestDraft,
  type ResponseProgress,
  sendRequest,
  type SentRequest,
} from './request.js'
import { Button } from '../parts/texts.js'

interface Form {
  operation: Operation
  draft: RequestDraft
  change: (draft: RequestDraft) => void
}

/** A form that sends a real request and shows the response. */
function TryForm(form: Form) {
  const { wasOpen, onToggle } = useWasOpen(false)
  return (
    <details class="try" onToggle={onToggle}>
      <summary>Try it</summary>
      {wasOpen && <OpenForm {...form} />}
    </details>
  )
}

function OpenForm({ operation, draft, change }: Form) {
  const [reading, setReading] = useState<ResponseProgress | undefined>()
  const { begin, stop } = useTask()
  const isSending = reading !== undefined && !reading.isEnded
  const send = (event: Event): void => {
    event.preventDefault()
    void sendRequest(sent(operation, draft), { signal: begin(), report: setReading })
  }
  return (
    <>
      <form autocomplete="off" onSubmit={send}>
        {operation.parameters
          // The browser never compresses request bodies.
          .filter(({ name }) => name !== 'Content-Encoding')
          .map((parameter) => (
            <ParameterField
              key={parameter.name}
              id={`${operation.operationId}-${parameter.name}`}
              parameter={parameter}
              value={draft.values[parameter.name] ?? ''}
              change={(value) => change({ ...draft, values: { ...draft.values, [parameter.name]: value } })}
            />
          ))}
        {draft.choice !== undefined && <BodyField operation={operation} draft={draft} change={change} />}
        <div class="send">
          <Button
            text="Send"
            type="submit"
            class={operation.method === 'delete' ? 'primary risky' : 'primary'}
            disabled={isSending}
          />
          {isSending && <Button text="Stop" onClick={stop} />}
          {needsKey(operation) && <Sender />}
        </div>
      </form>
      <ResponsePanel reading={reading} />
    </>
  )
}

/** Whose key the request carries. */
function Sender() {
  const key = apiKey.value.trim()
  const taken = consoleKey.value
  if (taken !== undefined && key === taken.key)
    return <small class="muted">as {taken.identity}, signed in to the console</small>
  return <small class="muted">{key === '' ? 'without a key' : 'with the key entered above'}</small>
}

function sent(operation: Operation, draft: RequestDraft): SentRequest {
  const headers = new Headers(headersOf(operation, draft))
  const key = apiKey.value.trim()
  if (key !== '' && needsKey(operation)) headers.set('Authorization', `Bearer ${key}`)
  return {
    address: addressOf(operation, draft),
    method: operation.method.toUpperCase(),
    headers,
    body: draft.choice === undefined ? undefined : draft.body,
    hasKey: key !== '',
  }
}

function ParameterField(props: {
  id: string
  parameter: Parameter
  value: string
  change: (value: string) => void
}) {
  const { id, parameter, value, change } = props
  const { name, in: location, required, schema } = parameter
  const { value: shape } = follow(useContext(Api), schema)
  return (
    <div class="try-field">
      <label for={id}>
        {name}
        {location !== 'path' && <small>{location}</small>}
      </label>
      {shape.enum === undefined ? (
        <input
          id={id}
          value={value}
          required={required === true}
          spellcheck={false}
          autocapitalize="none"
          placeholder={shape.default === undefined ? '' : String(shape.default)}
          onInput={(event) => change(event.currentTarget.value)}
        />
      ) : (
        <select id={id} value={value} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">–</option>
          {shape.enum.map((one) => (
            <option key={String(one)} value={String(one)}>
              {String(one)}
            </option>
          ))}
        </select>
      )}
    </div>
  )
}

function BodyField({ operation, draft, change }: Form) {
  const id = `${operation.operationId}-body`
  return (
    <div class="try-field whole">
      <label for={id}>Body</label>
      <textarea
        id={id}
        spellcheck={false}
        autocapitalize="none"
        value={draft.body}
        onInput={(event) => change({ ...draft, body: event.currentTarget.value })}
      />
    </div>
  )
}

/**
 * Whether an element was ever open. Its content is rendered only then, because the page has about a hundred
 * forms.
 */
export function useWasOpen(isOpen: boolean) {
  const [wasOpen, setOpened] = useState(isOpen)
  const onToggle = ({ currentTarget }: TargetedToggleEvent<HTMLDetailsElement>): void => {
    if (currentTarget.open) setOpened(true)
  }
  return { wasOpen, onToggle }
}

/** The request of an operation as a curl command and as a form. */
export function RequestPanels({ operation }: { operation: Operation }) {
  const existing = exampleAgent.value
  const [draft, setDraft] = useState(() => firstDraft(operation, existing))
  const choices = choicesOf(operation, existing)
  const choose = (index: number): void => {
    const choice = choices[index]
    setDraft({ ...draft, choice, body: choice?.text ?? '' })
  }
  return (
    <>
      <CodePanel heading="curl" name="Request as a curl command" text={curlText(operation, draft)}>
        {choices.length > 1 && (
          <select
            class="choice"
            aria-label="Example"
            onChange={(event) => choose(Number(event.currentTarget.value))}
          >
            {choices.map(({ label }, index) => (
              <option key={label} value={index}>
                {label}
              </option>
            ))}
          </select>
        )}
      </CodePanel>
      <TryForm operation={operation} draft={draft} change={setDraft} />
    </>
  )
}

/** The response, updated while it arrives. */
function ResponsePanel({ reading }: { reading: ResponseProgress | undefined }) {
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
      {reading?.head !== undefined && <ResponseHeaders headers={reading.head.headers} />}
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

function ResponseHeaders({ headers }: { headers: readonly [string, string][] }) {
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
