import { useComputed } from '@preact/signals'
import { useContext } from 'preact/hooks'
import { CodePanel, Prose } from './code.js'
import { Api, exampleAgent, matchesSearch } from './context.js'
import type { Media, Operation, ResponseOf } from './document.js'
import { isGood, RequestPanels, statusClass, useWasOpen } from './try-form.js'
import { pretty } from './request.js'
import { SchemaReader } from './schema.js'
import { PlainTable, RowsTable, SchemaTable } from './schema-table.js'

/** An operation: its parameters, its responses, and a form that sends it. */
export function OperationView({ operation }: { operation: Operation }) {
  const { operationId, summary, method, path } = operation
  const headingId = `${operationId}-heading`
  const scope = operation['x-scope']
  const hidden = useComputed(() => !matchesSearch(operation))
  return (
    <article class="operation" id={operationId} aria-labelledby={headingId} hidden={hidden}>
      <h3 id={headingId}>
        <a href={`#${operationId}`}>{summary}</a>
      </h3>
      <div class="signature">
        <span class={`method ${method}`}>{method}</span>
        <code>
          {path.split(/(\{[^}]+\})/).map((part) => (part.startsWith('{') ? <b key={part}>{part}</b> : part))}
        </code>
        <span class="scope">
          {scope === 'none' ? (
            'No credentials required'
          ) : (
            <>
              Scope <code>{scope}</code>
            </>
          )}
        </span>
      </div>
      <div class="columns">
        <div class="about">
          <Parameters operation={operation} />
          <RequestBody operation={operation} />
          <Responses operation={operation} />
        </div>
        <div class="side">
          {/* An agent that exists replaces that of the examples. */}
          <RequestPanels key={exampleAgent.value?.agent} operation={operation} />
          <ExamplePanel operation={operation} />
        </div>
      </div>
    </article>
  )
}

const parameterLocations = [
  ['path', 'Path'],
  ['query', 'Query'],
  ['header', 'Headers'],
] as const

function Parameters({ operation: { parameters } }: { operation: Operation }) {
  const reader = new SchemaReader(useContext(Api), false)
  return (
    <>
      {parameterLocations.map(([location, heading]) => {
        const rows = parameters
          .filter((one) => one.in === location)
          .map(({ name, schema, required = false, description }) =>
            reader.row({ name, schema, needed: required, described: description }, 0),
          )
        if (rows.length === 0) return null
        return (
          <>
            <h4>{heading}</h4>
            <RowsTable heading="Name" rows={rows} />
          </>
        )
      })}
    </>
  )
}

function RequestBody({ operation: { requestBody } }: { operation: Operation }) {
  const reader = new SchemaReader(useContext(Api), false)
  if (requestBody === undefined) return null
  return (
    <>
      {Object.entries(requestBody.content).map(([mediaType, { schema }]) => (
        <>
          <h4>
            Request body <code>{mediaType}</code>
          </h4>
          <SchemaTable schema={schema} reader={reader} />
        </>
      ))}
      {requestBody.description !== undefined && (
        <p class="muted">
          <Prose text={requestBody.description} />
        </p>
      )}
    </>
  )
}

function Responses({ operation: { responses } }: { operation: Operation }) {
  return (
    <>
      <h4>Responses</h4>
      <div class="answers">
        {Object.entries(responses).map(([status, response]) => (
          <ResponseView key={status} status={status} response={response} />
        ))}
      </div>
    </>
  )
}

function ResponseView({ status, response }: { status: string; response: ResponseOf }) {
  const { description, content = {} } = response
  const { wasOpen, onToggle } = useWasOpen(isGood(status))
  return (
    <details open={isGood(status)} onToggle={onToggle}>
      <summary>
        <b class={`code-status ${statusClass(status)}`}>{status === 'default' ? 'other' : status}</b>
        <span>{description}</span>
      </summary>
      <div class="inside">
        {wasOpen &&
          Object.entries(content).map(([mediaType, media]) => (
            <ResponseBody key={mediaType} mediaType={mediaType} media={media} />
          ))}
      </div>
    </details>
  )
}

function ResponseBody({ mediaType, media }: { mediaType: string; media: Media }) {
  const reader = new SchemaReader(useContext(Api), true)
  if (mediaType !== 'application/problem+json') {
    return (
      <>
        <p class="muted">
          <code>{mediaType}</code>
        </p>
        {reader.rows(media.schema).length > 0 && <SchemaTable schema={media.schema} reader={reader} />}
      </>
    )
  }
  const codes = Object.values(media.examples ?? {}).flatMap(({ value }) => (isProblem(value) ? [value] : []))
  if (codes.length === 0) {
    return (
      <p class="muted">
        A problem (RFC 9457), <code>{mediaType}</code>
      </p>
    )
  }
  return (
    <PlainTable heads={['Code', 'Meaning']}>
      {codes.map(({ code, title }) => (
        <tr key={code}>
          <td class="member">
            <a href={`#error-${code}`}>
              <code>{code}</code>
            </a>
          </td>
          <td class="words">{title}</td>
        </tr>
      ))}
    </PlainTable>
  )
}

function isProblem(value: unknown): value is { code: string; title: string } {
  return typeof value === 'object' && value !== null && 'code' in value && 'title' in value
}

/** The example of the first successful response. */
function ExamplePanel({ operation: { responses } }: { operation: Operation }) {
  const [status, response] = Object.entries(responses).find(([one]) => isGood(one)) ?? []
  const [media] = Object.values(response?.content ?? {})
  const [example] = Object.values(media?.examples ?? {})
  const text = example === undefined ? media?.example : pretty(example.value)
  if (text === undefined) return null
  return (
    <CodePanel
      heading={`Response ${status}`}
      name="Example response"
      text={String(text)}
      isJson={example !== undefined}
    />
  )
}
