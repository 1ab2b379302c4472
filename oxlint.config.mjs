/**
 * The house rules that a linter can check. test/house/lint-rules.test.ts plants a violation of each one, so that none
 * goes silently green. An override replaces a rule's options whole, which is why the lists are put together here.
 */

const words = (text) => text.split(' ')

/** Which folder of src may import which: the one table of layers. test/house/lint-rules.test.ts wants a line for each. */
export const layers = {
  base: [],
  strand: ['base'],
  proof: ['base', 'strand'],
  auth: ['base', 'strand'],
  wire: ['base', 'strand'],
  settings: ['base', 'strand', 'auth'],
  protocol: ['base', 'strand', 'proof', 'auth'],
  outbound: ['base', 'auth'],
  door: ['base', 'settings'],
  dispatch: ['base', 'protocol'],
  'data-directory': ['base', 'strand', 'wire', 'settings'],
  backup: ['base', 'wire', 'protocol', 'dispatch', 'data-directory'],
  routes: ['base', 'strand', 'auth', 'wire', 'protocol', 'outbound'],
  http: words('base strand proof auth wire settings protocol dispatch routes door'),
  server: words('base auth wire settings protocol outbound dispatch data-directory backup routes http'),
  client: ['proof'],
  console: ['strand', 'proof', 'auth', 'client'],
  cli: words(
    'base strand proof auth wire settings protocol outbound dispatch data-directory backup door client',
  ),
}
const workersMayImport = ['base', 'strand', 'proof', 'auth', 'wire', 'protocol']

/** Rooms that a page of the console may import: every page may import the parts and the shell. */
const page = (...others) => ['parts', 'shell', ...others]

/** Folders within a folder, and which of their neighbours they may import. Files beside them may import all of them. */
export const rooms = {
  // Pages share parts and the shell, and no page imports another page. The few exceptions are named in their lines.
  'src/console': {
    parts: [],
    shell: ['palette', 'parts'],
    palette: page('agents', 'keys'),
    // Many pages show records and proofs, so these rooms are shared too.
    proof: ['parts'],
    records: page('erasing', 'proof'),
    erasing: page('proof', 'records'),
    // The page of an agent and its tabs.
    agents: page('agent-changes', 'graph', 'keys', 'proof', 'records', 'rules', 'time'),
    'agent-changes': page('proposals'),
    graph: page('records'),
    rules: page('records'),
    time: page('proof', 'records'),
    api: page(),
    audit: page('records'),
    health: page(),
    home: page('agents', 'health', 'records'),
    keys: page(),
    live: page('agents', 'records'),
    log: page(),
    proposals: page('records'),
    start: page('keys', 'proof', 'records'),
    users: page('audit', 'proof', 'records'),
  },
  'src/dispatch': { cluster: [] },
  'src/front/http': { auth: [], import: [], ingest: [], openapi: [], streams: ['auth'] },
  // The server has no folders yet: the first one needs a line here.
  'src/server': {},
  workers: {
    auth: ['shard', 'store'],
    commands: ['auth', 'import', 'mutations', 'shard', 'store'],
    import: ['mutations', 'shard', 'store'],
    mutations: ['shard', 'store'],
    reshard: ['store'],
    shard: ['auth', 'commands', 'mutations', 'store'],
    sink: ['store'],
    store: [],
  },
}

/** Folders that may name the type of the settings, and are handed their values. */
const handedSettings = ['routes', 'outbound', 'dispatch', 'backup']

const upTo = (path) => `^(\\.\\./)+${path}`

/** Patterns that keep the files of `folder` (in src, or workers) to the folders that it may import. */
function layer(folder, mayImport) {
  const src = folder === 'workers' ? 'src/' : ''
  const shut = Object.keys(layers).filter((name) => name !== folder && !mayImport.includes(name))
  const typesOnly = handedSettings.includes(folder) ? ['settings'] : []
  const forbidden = shut.filter((name) => !typesOnly.includes(name))
  const message = `${folder} may import ${mayImport.join(', ') || 'nothing of ours'}`
  const patterns = [{ regex: upTo(`${src}(${forbidden.join('|')})/`), message }]
  if (folder !== 'cli') patterns.push({ regex: upTo(`${src}main\\.js$`), message })
  if (folder !== 'cli' && folder !== 'workers') patterns.push({ regex: upTo('workers/'), message })
  for (const name of typesOnly) {
    const handed = `${folder} is handed its settings`
    patterns.push({ regex: upTo(`${name}/`), allowTypeImports: true, message: handed })
  }
  return patterns
}

/** Patterns that keep the files of a room to the neighbours that it may import. */
function room(within, name) {
  const mayImport = rooms[within][name]
  const forbidden = Object.keys(rooms[within]).filter((one) => one !== name && !mayImport.includes(one))
  if (forbidden.length === 0) return []
  const message = `${within}/${name} may import ${mayImport.join(', ') || 'none of its neighbours'}`
  // Folders of a room, as workers/store/check, are one step further away. In src the same step leads to another layer.
  const up = within === 'workers' ? '\\.\\./(\\.\\./)?' : '\\.\\./'
  return [{ regex: `^${up}(${forbidden.join('|')})/`, message }]
}

/** Each outside thing has one door. Patterns that keep all of them shut but `open`. */
function doors(...open) {
  const shut = {
    'uWebSockets.js': 'Only src/front/door/uws.ts imports uWebSockets.js',
    lmdb: 'Only workers/store imports lmdb',
    'sodium-native': 'Only src/strand/keys.ts imports sodium-native',
    pg: 'Only src/outbound imports pg',
    'pg-copy-streams': 'Only src/outbound imports pg-copy-streams',
  }
  const patterns = Object.entries(shut)
    .filter(([name]) => !open.includes(name))
    .map(([name, message]) => ({ regex: `^${name.replace('.', '\\.')}$`, message }))
  if (open.includes('parentPort')) return patterns
  const message = 'Only the entry files of threads import parentPort'
  return [
    ...patterns,
    { group: ['node:worker_threads', 'worker_threads'], importNames: ['parentPort'], message },
  ]
}

const restrict = (files, patterns) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns }] },
})

const exceptClient = { regex: '^(\\.{1,2}/)+client/', message: 'The client is a product of its own' }

const onlyTypesOfWire = [
  { regex: '^[^.]', message: 'The client has no dependency' },
  { regex: upTo('wire/'), allowTypeImports: true, message: 'The client takes types of wire' },
  { regex: upTo('proof/node/'), message: 'The client runs where there is no Node' },
  { regex: upTo('strand/'), allowTypeImports: true, message: 'The client takes types of strand' },
  ...layer('client', ['wire', 'strand', ...layers.client]),
]

/** The console runs in browsers: what it takes needs no Node, and what it shows is text. */
const runsInBrowsers = [
  // Any package whose name does not begin as preact, @preact or uplot: the linter's expressions cannot look ahead.
  {
    regex: '^([^.@pu]|p([^r]|r[^e]|re[^a])|@([^p]|p[^r])|u([^p]|p[^l]))',
    message: 'The console imports preact, its signals and uPlot alone',
  },
  { regex: upTo('wire/'), allowTypeImports: true, message: 'The console takes types of wire' },
  { regex: upTo('proof/node/'), message: 'The console runs where there is no Node' },
  ...layer('console', ['wire', ...layers.console]),
]
const asHtml = words(
  'innerHTML outerHTML insertAdjacentHTML setHTMLUnsafe dangerouslySetInnerHTML createContextualFragment',
)

/** The decisions of a cluster are pure: this folder imports no other file of dispatch. */
const decidesAlone = { regex: '^\\.\\./[^./]', message: 'src/cluster/members imports no file of dispatch' }

/** What checks are made of runs anywhere: bytes are Uint8Array, and hashing and verifying are handed in. */
const runsAnywhere = [
  { regex: '^[^.]', message: 'Checks import no package and nothing of Node: proof/node does' },
  { regex: '^\\./node/', message: 'Checks are handed what hashes and verifies' },
  {
    group: [
      '../strand/*',
      ...['header', 'record-type', 'rotation-proof', 'strand-export'].map((name) => `!../strand/${name}.js`),
    ],
    allowTypeImports: true,
    message: 'Of strand checks import what needs no Node',
  },
  { regex: upTo('base/'), message: 'Checks import nothing of base, parts of which need Node' },
  ...layer('proof', layers.proof),
]

const threadEntries = [
  'workers/shard-thread.ts',
  'workers/password.ts',
  'workers/reader.ts',
  'workers/follower.ts',
]
/** The two threads that talk to the network: the sink, and the log of a cluster. */
const networkMayImport = [...workersMayImport, 'outbound']
const inSrc = Object.keys(layers).filter((folder) => folder !== 'client')
const inWorkers = layer('workers', workersMayImport)

const shortFiles = { 'max-lines': ['error', { max: 400 }], 'max-lines-per-function': ['error', { max: 70 }] }

export default {
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'node'],
  categories: { correctness: 'error', suspicious: 'error' },
  ignorePatterns: ['dist', 'test/vectors'],
  rules: {
    eqeqeq: 'error',
    'no-var': 'error',
    'prefer-const': 'error',
    'max-params': ['error', { max: 3 }],
    'typescript/no-explicit-any': 'error',
    'typescript/consistent-type-imports': 'error',
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'unicorn/prefer-node-protocol': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'oxc/no-barrel-file': ['error', { threshold: 0 }],
    // Suspicious to the linter, plain to us.
    'import/no-named-as-default-member': 'off',
    'no-shadow': 'off',
    'no-underscore-dangle': 'off',
    'unicorn/no-array-reverse': 'off',
    'unicorn/no-array-sort': 'off',
    'unicorn/consistent-function-scoping': 'off',
    // Control characters are what header and JSON checks look for.
    'no-control-regex': 'off',
    // Of windows, not of threads.
    'unicorn/require-post-message-target-origin': 'off',
  },
  overrides: [
    restrict(['src/*.ts'], [exceptClient, ...doors()]),
    {
      files: ['src/**', 'workers/**'],
      rules: {
        'no-restricted-properties': [
          'error',
          {
            property: 'terminate',
            message:
              'A thread in a native call that is ended from outside may take the process along: ask it to end',
          },
        ],
      },
    },
    // A thread that hangs does nothing that it is asked for.
    { files: ['src/dispatch/threads/thread-watch.ts'], rules: { 'no-restricted-properties': 'off' } },
    ...inSrc.map((folder) => restrict([`src/${folder}/**`], [...layer(folder, layers[folder]), ...doors()])),
    ...['dispatch', 'http', 'server'].flatMap((folder) =>
      Object.keys(rooms[`src/${folder}`]).map((name) =>
        restrict(
          [`src/${folder}/${name}/**`],
          [...layer(folder, layers[folder]), ...room(`src/${folder}`, name), ...doors()],
        ),
      ),
    ),
    restrict(['src/cluster/members/**'], [...layer('dispatch', layers.dispatch), decidesAlone, ...doors()]),
    restrict(['src/front/door/uws.ts'], [...layer('door', layers.door), ...doors('uWebSockets.js')]),
    restrict(['src/strand/keys.ts'], [...layer('strand', layers.strand), ...doors('sodium-native')]),
    restrict(['src/client/**'], onlyTypesOfWire),
    restrict(['src/console/**'], runsInBrowsers),
    ...Object.keys(rooms['src/console']).map((name) =>
      restrict([`src/console/${name}/**`], [...runsInBrowsers, ...room('src/console', name)]),
    ),
    {
      files: ['src/console/**'],
      plugins: ['react'],
      rules: {
        'react/no-danger': 'error',
        // The compiler puts in what the elements need; Preact takes names of attributes as HTML has them.
        'react/react-in-jsx-scope': 'off',
        'react/no-unknown-property': 'off',
        // Signals and refs are there to be written; what an effect depends on is chosen.
        'react/immutability': 'off',
        'react/exhaustive-deps': 'off',
        'react/rules-of-hooks': 'error',
        'no-restricted-properties': [
          'error',
          ...asHtml.map((property) => ({
            property,
            message: 'The console shows text, never HTML of its own making',
          })),
          { object: 'document', property: 'write', message: 'The console shows text' },
        ],
      },
    },
    restrict(['src/proof/*.ts'], runsAnywhere),
    restrict(['workers/**'], [...inWorkers, ...doors()]),
    ...Object.keys(rooms.workers).map((name) =>
      restrict([`workers/${name}/**`], [...inWorkers, ...room('workers', name), ...doors()]),
    ),
    restrict(['workers/store/**'], [...inWorkers, ...room('workers', 'store'), ...doors('lmdb')]),
    restrict(threadEntries, [...inWorkers, ...doors('parentPort')]),
    // The thread of a front is the server's: it carries out requests, and opens no store.
    restrict(
      ['workers/front.ts'],
      [...layer('workers', [...workersMayImport, 'server']), ...doors('parentPort')],
    ),
    restrict(
      ['workers/sink/**'],
      [...layer('workers', networkMayImport), ...room('workers', 'sink'), ...doors()],
    ),
    restrict(
      ['workers/sink.ts', 'workers/cluster-log.ts'],
      [...layer('workers', networkMayImport), ...doors('parentPort')],
    ),
    restrict(['src/outbound/**'], [...layer('outbound', layers.outbound), ...doors('pg', 'pg-copy-streams')]),
    { files: ['src/**', 'workers/**', 'bench/**', 'scripts/**'], rules: shortFiles },
    {
      files: ['src/**', 'workers/**'],
      rules: {
        'no-console': 'error',
        // uWebSockets.js takes this one from the environment and nowhere else.
        'node/no-process-env': ['error', { allowedVariables: ['UWS_HTTP_MAX_HEADERS_SIZE'] }],
        'typescript/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      },
    },
    { files: ['src/cli/**'], rules: { 'no-console': 'off' } },
    // Tables of made and broken examples.
    { files: ['scripts/vectors/**'], rules: { 'max-params': 'off', 'max-lines-per-function': 'off' } },
    { files: ['test/**'], rules: { 'typescript/consistent-type-imports': 'off' } },
    { files: ['src/client/index.ts'], rules: { 'oxc/no-barrel-file': 'off' } },
    { files: ['src/settings/config.ts'], rules: { 'node/no-process-env': 'off' } },
    {
      files: ['src/wire/**', 'src/client/**', 'src/protocol/frame.ts', 'workers/store/**'],
      rules: { 'typescript/consistent-type-assertions': 'off' },
    },
    { files: ['vitest.config.ts', 'oxlint.config.mjs'], rules: { 'import/no-default-export': 'off' } },
  ],
}
