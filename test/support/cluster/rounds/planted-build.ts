import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A rule of clusters, and changes to the built program that break it. */
export interface PlantedBug {
  name: string
  /** Texts that occur exactly once in the built program, and their replacements. */
  changes: readonly (readonly [text: string, other: string])[]
  /** Names of the faults that reveal it. */
  shownBy: readonly string[]
  /** Whether it affects links. */
  linked?: true
}

/** A changed program. */
export interface PlantedBuild {
  program: string
  remove(): void
}

const root = join(import.meta.dirname, '../../../..')

/** The built program, all files in one text. */
export function programText(): string {
  const program = join(root, 'dist/program')
  return readdirSync(program, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(program, name), 'utf8'))
    .join('\n')
}

/** Changes to a copy of the built program. */
interface BuildChanges {
  changes?: PlantedBug['changes']
  /** The version that it reports. */
  version?: string
}

/** Copies the built program with a bug, or with another version. */
export function plantedBuild({ changes = [], version }: BuildChanges): PlantedBuild {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-planted-'))
  const copy = join(directory, 'dist/program')
  cpSync(join(root, 'dist/program'), copy, { recursive: true })
  const packageJson: object = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const changed = version === undefined ? packageJson : { ...packageJson, version }
  writeFileSync(join(directory, 'package.json'), JSON.stringify(changed))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const files = readdirSync(copy, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(copy, name))
  for (const [text, other] of changes) {
    const containing = files.filter((path) => readFileSync(path, 'utf8').includes(text))
    const [path] = containing
    const parts = path === undefined ? [] : readFileSync(path, 'utf8').split(text)
    if (path === undefined || containing.length !== 1 || parts.length !== 2)
      throw new Error(`The built program does not contain this exactly once: ${text}`)
    writeFileSync(path, parts.join(other))
    const { status, stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`The program with '${other}' is not valid: ${stderr}`)
  }
  return {
    program: join(copy, 'strandfast.js'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** Broken rules of clusters. Rounds reveal them by chance; the named test finds each one reliably, in CI. */
export const plantedBugs: readonly PlantedBug[] = [
  // test/unit/store/shard-store.test.ts
  {
    name: 'rows that are in the store before the log has them',
    changes: [
      [
        'this.#log.append(encodeChanges(changes));',
        'commitDurably(this.environment, () => this.#memtable.move(() => {})); this.#log.append(encodeChanges(changes));',
      ],
    ],
    shownBy: ['an owner that is cut off', 'kill -9 of the owner', 'an owner that is cut off one way'],
  },
  // test/unit/cluster/members/lease-memory.test.ts
  {
    name: 'a lease that is not checked',
    changes: [['return this.untilMs > this.#nowMs();', 'return true;']],
    shownBy: ['a stopped owner', 'an owner that is cut off'],
  },
  // test/unit/store/shard-store.test.ts
  {
    name: 'removals that are not read',
    changes: [
      ['this.#memtable.replay(change);', 'if (change.value !== undefined) this.#memtable.replay(change);'],
    ],
    shownBy: ['kill -9 of the owner', 'kill -9 of all'],
  },
  // test/faults/log-losses.slow.test.ts
  {
    name: 'a position that is written before its rows',
    changes: [
      [
        'move(rest) {',
        'past(rest) { this.#isFlushing = true; rest(); this.#isFlushing = false; } move(rest) {',
      ],
      [
        'const { end } = this.#log;\n\t\tcommitDurably(',
        // For long enough that a kill can hit it.
        `const { end } = this.#log;
         commitDurably(this.environment, () => this.#memtable.past(() => putPosition(this.environment, end)));
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
         commitDurably(`,
      ],
    ],
    shownBy: ['kill -9 of all'],
  },
  // test/cluster/cluster-log.test.ts
  {
    name: 'shards that are opened while the node that wrote last is alive',
    changes: [
      ['!isClosed && isAlive()', 'false'],
      ['if (this.#client.isAlive(last)) throw', 'if (false) throw'],
    ],
    shownBy: ['nothing'],
  },
  // test/unit/cluster/links/peer-link.test.ts
  {
    name: 'a node that answers for longer than the owner permits',
    changes: [
      ['this.#lease.extend(message.atMs + message.forMs);', 'this.#lease.extend(message.atMs + 1e9);'],
    ],
    shownBy: ['a record that is erased while a node is cut off from the others'],
    linked: true,
  },
  // test/unit/cluster/links/shard-relay.test.ts
  {
    name: 'an owner that does not wait until the other nodes have processed a notice',
    changes: [
      [
        'this.#parts.link.sendFrame(this.#parts.shard, frame);',
        'this.#memory.acknowledge(this.#parts.front, noticeNo); this.#parts.link.sendFrame(this.#parts.shard, frame);',
      ],
    ],
    shownBy: ['slow links'],
    linked: true,
  },
]

/** Rules of a transfer (docs/adr/0048-owners-of-shards.md), each of them broken. */
export const plantedTransfers: readonly Pick<PlantedBug, 'name' | 'changes'>[] = [
  {
    name: 'an owner that releases a shard before others have stopped sending to it',
    changes: [['await leaving(shard);', '']],
  },
  {
    name: 'a front of another node that continues to send',
    changes: [['thread?.link.leaving(thread);', '']],
  },
  {
    name: 'commands that do not wait for the next owner',
    changes: [['this.#held = waits ? new HeldCommands() : void 0;', 'this.#held = void 0;']],
  },
  {
    name: 'requests that are not held until the keys of callers are known again',
    changes: [['await handling.shards.untilCurrent(decidingShard(caller, handling));', '']],
  },
]
