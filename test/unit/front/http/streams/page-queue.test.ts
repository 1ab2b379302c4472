import { expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { PageQueue } from '../../../../../src/front/http/streams/page-queue.js'
import type { Command, Outcome } from '../../../../../src/protocol/messages.js'

const command: Command = { kind: 'strandLocate', agent: 'one' }

it('pages of one caller wait for one page of each other caller, however many streams these have', () => {
  const sent: ((outcome: Outcome) => void)[] = []
  const queue = new PageQueue((_command, receive) => sent.push(receive))
  const received: string[] = []
  const enqueue = (caller: string) =>
    queue.enqueue({ caller, command, receive: () => received.push(caller), isOpen: () => true })
  for (let stream = 0; stream < 400; stream++) enqueue('many')
  expect(sent).toHaveLength(limits.streamPagesInFlightMax)
  for (let stream = 0; stream < 3; stream++) enqueue('few')
  while (received.length < 403) sent.shift()?.({ kind: 'done' })
  const inFlight = limits.streamPagesInFlightMax
  expect(received.slice(inFlight, inFlight + 6).filter((caller) => caller === 'few')).toHaveLength(3)
})
