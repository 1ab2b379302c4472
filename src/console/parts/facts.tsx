import { type ComponentChildren, Fragment } from 'preact'
import { useRoving } from './roving.js'

/** Values by name, in order; undefined values are omitted. */
type FactValues = Readonly<Record<string, ComponentChildren>>

export function Facts({ facts }: { facts: FactValues }) {
  return (
    <dl class="facts">
      {shown(facts).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

export function LineFacts({ facts }: { facts: FactValues }) {
  const buttons = useRoving<HTMLDListElement>()
  return (
    <dl ref={buttons} class="line-facts">
      {shown(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function shown(facts: FactValues) {
  return Object.entries(facts).filter(([, value]) => value !== undefined)
}
