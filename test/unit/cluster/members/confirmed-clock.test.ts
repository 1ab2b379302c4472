import { expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { ConfirmedClock } from '../../../../src/protocol/confirmed-clock.js'

it('follows the clock of the machine no further than another node would, until it is confirmed', () => {
  const [shift, machine] = [{ ms: 0 }, { ms: 5_000.25 }]
  const wall = () => 1_700_000_000_000 + Math.floor(machine.ms) + shift.ms
  const clock = new ConfirmedClock(undefined, wall, () => machine.ms)
  const inThread = new ConfirmedClock(clock.memory, wall, () => machine.ms)
  clock.confirm(wall() - machine.ms)
  const { clusterClockMs } = limits
  const shown: number[] = []
  for (const ms of [0, 3_000, 120_000, -86_400_000]) {
    machine.ms += 700
    shift.ms = ms
    shown.push(inThread.now() - 1_700_000_000_000 - Math.floor(machine.ms))
  }
  expect(shown).toEqual([0, 3_000, clusterClockMs, -clusterClockMs])
  shift.ms = 120_000
  clock.confirm(wall() - machine.ms)
  expect(inThread.now()).toBe(wall())
})
