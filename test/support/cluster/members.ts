import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { eventually } from '../eventually.js'

const program = fileURLToPath(new URL('member-process.mjs', import.meta.url))

/** An event reported by `member-process.mjs`. */
export interface MemberEvent {
  event:
    | 'joined'
    | 'members'
    | 'trouble'
    | 'distrusts'
    | 'answered'
    | 'expelled'
    | 'ended'
    | 'left'
    | 'taken'
    | 'failed'
  node: string
  /** Time of the machine's clock, which all processes share. */
  atMs: number
  incarnation?: number
  names?: string[]
  /** The node that should own each of 8 shards. */
  owners?: string[]
  whom?: string
  message?: string
}

/** Options of a node. */
export interface MemberOptions {
  tables: string
  leaseMs: number
  /** Options of Node. */
  options?: readonly string[]
  env?: Readonly<Record<string, string>>
}

/** A node in a separate process. */
export class TestMember {
  readonly node: string
  readonly events: MemberEvent[] = []
  #members = ''
  readonly exited: Promise<unknown>
  readonly #child: ChildProcess

  constructor(node: string, urls: readonly string[], making: MemberOptions) {
    const { tables, leaseMs, options = [], env = {} } = making
    this.node = node
    const args = [...options, program, urls.join(' '), tables, node, `${leaseMs}`]
    this.#child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    })
    this.exited = once(this.#child, 'exit')
    if (this.#child.stdout === null) throw new Error('Expected the output of a process')
    createInterface(this.#child.stdout).on('line', (line) => this.#take(JSON.parse(line)))
  }

  get exitCode(): number | null {
    return this.#child.exitCode
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Resolves when the node has joined. */
  async joined(): Promise<this> {
    await this.reports('joined')
    return this
  }

  /** Resolves when the node has reported an event after a time. */
  async reports(event: MemberEvent['event'], after = 0): Promise<void> {
    await eventually(() => this.events.some((one) => one.event === event && one.atMs > after))
  }

  /** Resolves when the node considers exactly these nodes alive. */
  async sees(...names: string[]): Promise<void> {
    await eventually(() => this.#members === names.join())
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  #take(event: MemberEvent): void {
    if (event.event === 'members') this.#members = event.names?.join() ?? ''
    this.events.push(event)
  }

  async end(): Promise<void> {
    this.#child.kill('SIGCONT')
    this.#child.kill('SIGKILL')
    if (this.isRunning) await this.exited
  }
}

/** Answers that a node gave after another one had expelled it: must be empty. */
export function lateAnswers(members: readonly TestMember[]): MemberEvent[] {
  const events = members.flatMap((member) => member.events)
  return events
    .filter(({ event }) => event === 'expelled')
    .flatMap(({ whom, atMs }) =>
      events.filter(
        (one) => one.event === 'answered' && `${one.node} ${one.incarnation}` === whom && one.atMs > atMs,
      ),
    )
}
