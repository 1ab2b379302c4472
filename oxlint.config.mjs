/**
 * The house rules that a linter can check. test/house/lint-rules.test.ts plants a violation of each one, so that none
 * goes silently green. An override replaces a rule's options whole, which is why the lists are put together here.
 * Which folder may import which stands in test/house/rooms.ts.
 */

const words = (text) => text.split(' ')

/** Each outside thing has one door. Patterns that keep all of them shut but `open`. */
function doors(...open) {
  const shut = {
    'uWebSockets.js': 'Only src/front/door/uws.ts imports uWebSockets.js',
    lmdb: 'Only workers/store imports lmdb',
    'sodium-native': 'Only src/strand/keys.ts imports sodium-native',
    pg: 'Only src/outbound and the database of src/cluster import pg',
    'pg-copy-streams': 'Only src/outbound and src/cluster import pg-copy-streams',
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

/** Files that name no package, of Node either. */
const noPackage = (message) => ({ regex: '^[^.]', message })

const ofBrowsers = {
  // Any package whose name does not begin as preact, @preact or uplot: the linter's expressions cannot look ahead.
  regex: '^([^.@pu]|p([^r]|r[^e]|re[^a])|@([^p]|p[^r])|u([^p]|p[^l]))',
  message: 'The console imports preact, its signals and uPlot alone',
}
const asHtml = words(
  'innerHTML outerHTML insertAdjacentHTML setHTMLUnsafe dangerouslySetInnerHTML createContextualFragment',
)

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
    restrict(['src/**', 'workers/**'], doors()),
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
    restrict(['src/front/door/uws.ts'], doors('uWebSockets.js')),
    restrict(['src/strand/keys.ts'], doors('sodium-native')),
    restrict(['workers/store/**'], doors('lmdb')),
    restrict(
      ['src/outbound/**', 'src/cluster/database/**', 'src/cluster/fitness/**'],
      doors('pg', 'pg-copy-streams'),
    ),
    restrict(['workers/*.ts'], doors('parentPort')),
    restrict(['src/client/**'], [noPackage('The client has no dependency')]),
    restrict(['src/console/**'], [ofBrowsers]),
    restrict(
      ['src/proof/*.ts'],
      [noPackage('Checks import no package and nothing of Node: proof/node does')],
    ),
    {
      files: ['src/console/**'],
      plugins: ['react'],
      rules: {
        'react/no-danger': 'error',
        // The compiler puts in what the elements need; Preact takes names of attributes as HTML has them.
        'react/react-in-jsx-scope': 'off',
        'react/no-unknown-property': 'off',
        // Tables take what a cell shows of a row as functions, which they call: nothing of it is a component.
        'react/no-unstable-nested-components': ['error', { allowAsProps: true }],
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
