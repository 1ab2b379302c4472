import { shortHash } from '../format.js'
import type { Step } from './prove-record.js'

const marks: Record<Step['outcome'], { sign: string; word: string }> = {
  holds: { sign: '✓', word: 'Holds' },
  fails: { sign: '✗', word: 'Fails' },
  noted: { sign: '·', word: 'Noted' },
}

export function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <ol class="steps">
      {steps.map(({ outcome, title, how, result }, at) => (
        // Steps are only appended.
        <li key={at} class={outcome} style={{ '--at': String(at) }}>
          <span class="sign" aria-hidden="true">
            {marks[outcome].sign}
          </span>
          <div>
            <p class="step-title">
              <span class="hidden">{marks[outcome].word}: </span>
              {title}
            </p>
            <p class="step-how">
              <code>{how.replace(/\b[0-9a-f]{64}\b/g, shortHash)}</code>
              {result !== undefined && (
                <>
                  {' = '}
                  <code class="result" title={result}>
                    {shortHash(result)}
                  </code>
                </>
              )}
            </p>
          </div>
        </li>
      ))}
    </ol>
  )
}
