import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { eventually } from '../eventually.js'

const program = fileURLToPath(new URL('member-process.mjs', import.meta.url))

/** What a node of `member-process.mjs` tells. */
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
  /** Of the clock of the machine, which all processes share. */
  atMs: number
  incarnation?: number
  names?: string[]
  /** Of each of 8 shards, the node that should own it. */
  owners?: string[]
  whom?: string
  message?: string
}

/** How a node runs. */
export interface MemberMaking {
  tables: string
  leaseMs: number
  /** Options of Node. */
  options?: readonly string[]
  env?: Readonly<Record<string, string>>
}

/** A node in a process of its own. */
export class TestMember {
  readonly node: string
  readonly events: MemberEvent[] = []
  #members = ''
  readonly exited: Promise<unknown>
  readonly #child: ChildProcess

  constructor(node: string, urls: readonly string[], making: MemberMaking) {
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

  /** Whether it runs and has told that it joined. */
  async joined(): Promise<this> {
    await this.told('joined')
    return this
  }

  /** Resolves when it has told so. */
  async told(event: MemberEvent['event'], after = 0): Promise<void> {
    await eventually(() => this.events.some((one) => one.event === event && one.atMs > after))
  }

  /** Resolves when it takes these for alive. */
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

/** Answers that a node gave after another one had expelled it: there may be none. */
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
