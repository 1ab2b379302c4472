/**
 * The house rules that a linter can check. test/house/lint-rules.test.ts plants a violation of each one, so
 * that no rule is silently ineffective. An override replaces all options of a rule, so the lists are
 * assembled here. Allowed imports between folders are in test/house/layers.ts.
 */

const split = (text) => text.split(' ')

/**
 * Each external package may be imported in one place only. Returns patterns that forbid all of them except
 * `open`.
 */
function restricted(...open) {
  const messages = {
    'uWebSockets.js': 'Only src/front/engine/uws.ts imports uWebSockets.js',
    lmdb: 'Only workers/store imports lmdb',
    'sodium-native': 'Only src/strand/keys.ts imports sodium-native',
    pg: 'Only src/outbound and the database of src/cluster import pg',
    'pg-copy-streams': 'Only src/outbound and src/cluster import pg-copy-streams',
  }
  const patterns = Object.entries(messages)
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

/** Forbids all packages, including those of Node. */
const noPackage = (message) => ({ regex: '^[^.]', message })

/** Any package except eventsource-parser; the linter's expressions have no lookahead. */
const ofSubscriptions = {
  regex: '^([^.e]|e[^v])',
  message: 'Subscriptions import only eventsource-parser, which the client contains',
}

const ofBrowsers = {
  // Any package except preact, @preact and uplot.
  regex: '^([^.@pu]|p([^r]|r[^e]|re[^a])|@([^p]|p[^r])|u([^p]|p[^l]))',
  message: 'The console imports only preact, its signals and uPlot',
}
const asHtml = split(
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
    // Rules without use for this code.
    'import/no-named-as-default-member': 'off',
    'no-shadow': 'off',
    'no-underscore-dangle': 'off',
    'unicorn/no-array-reverse': 'off',
    'unicorn/no-array-sort': 'off',
    'unicorn/consistent-function-scoping': 'off',
    // Header and JSON checks match control characters.
    'no-control-regex': 'off',
    // This rule is for windows, not for threads.
    'unicorn/require-post-message-target-origin': 'off',
  },
  overrides: [
    restrict(['src/**', 'workers/**'], restricted()),
    {
      files: ['src/**', 'workers/**'],
      rules: {
        'no-restricted-properties': [
          'error',
          {
            property: 'terminate',
            message:
              'Terminating a thread during a native call may crash the process: send it a message to end',
          },
        ],
      },
    },
    // A hung thread cannot end by itself.
    { files: ['src/dispatch/threads/thread-watch.ts'], rules: { 'no-restricted-properties': 'off' } },
    restrict(['src/front/engine/uws.ts'], restricted('uWebSockets.js')),
    restrict(['src/strand/keys.ts'], restricted('sodium-native')),
    restrict(['workers/store/**'], restricted('lmdb')),
    restrict(
      ['src/outbound/**', 'src/cluster/database/**', 'src/cluster/fitness/**'],
      restricted('pg', 'pg-copy-streams'),
    ),
    restrict(['workers/*.ts'], restricted('parentPort')),
    restrict(['src/client/**'], [noPackage('The client has no dependency')]),
    restrict(['src/client/subscription.ts'], [ofSubscriptions]),
    restrict(['src/console/**'], [ofBrowsers]),
    restrict(
      ['src/proof/*.ts'],
      [noPackage('Checks import no package and nothing of Node, except in proof/node')],
    ),
    {
      files: ['src/console/**'],
      plugins: ['react'],
      rules: {
        'react/no-danger': 'error',
        // The compiler adds the imports of JSX; Preact accepts HTML attribute names.
        'react/react-in-jsx-scope': 'off',
        'react/no-unknown-property': 'off',
        // Tables call functions to render cells; these are not components.
        'react/no-unstable-nested-components': ['error', { allowAsProps: true }],
        // Signals and refs are mutable, and the dependencies of effects are chosen deliberately.
        'react/immutability': 'off',
        'react/exhaustive-deps': 'off',
        'react/rules-of-hooks': 'error',
        'no-restricted-properties': [
          'error',
          ...asHtml.map((property) => ({
            property,
            message: 'The console shows text, never generated HTML',
          })),
          { object: 'document', property: 'write', message: 'The console shows text, never generated HTML' },
        ],
      },
    },
    { files: ['src/**', 'workers/**', 'bench/**', 'scripts/**'], rules: shortFiles },
    {
      files: ['src/**', 'workers/**'],
      rules: {
        'no-console': 'error',
        // uWebSockets.js reads this variable only from the environment.
        'node/no-process-env': ['error', { allowedVariables: ['UWS_HTTP_MAX_HEADERS_SIZE'] }],
        'typescript/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      },
    },
    { files: ['src/cli/**'], rules: { 'no-console': 'off' } },
    // Tables of valid and invalid examples.
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
