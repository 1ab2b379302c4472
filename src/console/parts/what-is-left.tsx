/** What goes with a change, what stays, and what it does not reach (docs/SECURITY.md, Deleting and erasing). */
export interface Left {
  goes: string[]
  stays: string[]
  /** What has to be taken care of elsewhere. */
  notReached: string[]
}

/** What a change leaves, before it is made. */
export function WhatIsLeft({ left: { goes, stays, notReached } }: { left: Left }) {
  return (
    <div class="left">
      <Points title="What goes" points={goes} />
      <Points title="What stays" points={stays} />
      <Points title="What is not reached: take care of it yourself" points={notReached} />
    </div>
  )
}

function Points({ title, points }: { title: string; points: readonly string[] }) {
  if (points.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
    </>
  )
}
