import { useState } from 'preact/hooks'
import { CodePanel } from './code.js'
import type { Operation } from './document.js'
import { choicesOf, curlText, firstDraft } from './request.js'
import { TryForm } from './try-form.js'

/** A request of an operation: as a curl line, and as a form that sends it. They show the same request. */
export function RequestPanels({ operation }: { operation: Operation }) {
  const [draft, setDraft] = useState(() => firstDraft(operation))
  const choices = choicesOf(operation)
  const choose = (place: number): void => {
    const choice = choices[place]
    setDraft({ ...draft, choice, body: choice?.text ?? '' })
  }
  return (
    <>
      <CodePanel heading="curl" name="The request as a curl line" text={curlText(operation, draft)}>
        {choices.length > 1 && (
          <select
            class="choice"
            aria-label="Example"
            onChange={(event) => choose(Number(event.currentTarget.value))}
          >
            {choices.map(({ label }, place) => (
              <option key={label} value={place}>
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
