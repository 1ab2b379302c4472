import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { UnixMs } from './primitives.js'

const Count = Type.Integer({ minimum: 0 })

/** Answer of GET /v1/server. */
export const ServerInfo = Type.Object({
  version: Type.String(),
  node: Type.String({ description: 'Version of Node that it runs on' }),
  started_at_ms: UnixMs,
  read_only: Type.Boolean({ description: 'The data disk is nearly full' }),
  serving: Type.Boolean({ description: 'Every shard serves' }),
  shards: Type.Array(
    Type.Object({
      agents: Count,
      records: Type.Integer({ minimum: 0, description: 'Written since the thread of the shard started' }),
      deaths: Type.Integer({
        minimum: 0,
        description: 'Times that its thread ended by a fault and was started again',
      }),
    }),
  ),
  features: Type.Object({
    auth: Type.Boolean(),
    mail: Type.Boolean(),
    oauth_google: Type.Boolean(),
    oauth_github: Type.Boolean(),
    passkeys: Type.Boolean(),
    postgres: Type.Boolean(),
    server_log: Type.Boolean(),
    tls: Type.Boolean(),
    console: Type.Boolean(),
    data_open: Type.Boolean(),
  }),
  open_modes: Type.Array(Type.String(), {
    description: 'What is open to callers without a credential, a sentence each; empty where nothing is',
  }),
  license: Type.Union(
    [
      Type.Object({
        state: Type.Enum(['valid', 'expired', 'invalid', 'absent']),
        licensee: Type.Union([Type.String(), Type.Null()]),
        expires_at_ms: Type.Union([UnixMs, Type.Null()]),
        features: Type.Array(Type.String()),
        authority: Type.Union([Type.String(), Type.Null()], {
          description: 'Public key that it is checked by',
        }),
      }),
      Type.Null(),
    ],
    { description: 'Null while the auth add-on is off' },
  ),
  last_backup_copy_at_ms: Type.Union([UnixMs, Type.Null()], {
    description:
      'When the server had last copied its stores for a backup; null for never since its start. Whether that backup was ' +
      'checked and finished, strandfast backup tells',
  }),
  cluster: Type.Union(
    [
      Type.Object({
        node: Type.String({ description: 'The name of the node that answers' }),
        members: Type.Array(
          Type.Object({
            node: Type.String(),
            address: Type.String({ description: 'Where clients reach it, as it tells itself' }),
            version: Type.String({ description: 'Empty where it has not told yet' }),
            serves_since_ms: Type.Union([UnixMs, Type.Null()], {
              description: 'Since when it owns any shard; null while it stands by',
            }),
            owned_shards: Type.Array(Type.Integer({ minimum: 0 }), {
              description: 'Numbers of the shards that it owns',
            }),
            held_shards: Type.Array(Type.Integer({ minimum: 0 }), {
              description: 'Those, and the ones of which it has a copy that is up to the log',
            }),
            lag_secs: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
              description:
                'How long before its last beat its copies had all that the logs had; null while it owns all shards, and where it ' +
                'has not told yet',
            }),
          }),
          { description: 'Nodes that are alive, by name' },
        ),
        differences: Type.Array(Type.String(), {
          description: 'Settings that have to be alike on all of them and are not: a sentence each',
        }),
        faults: Type.Array(Type.String(), {
          description:
            'Rows of the database that do not verify, so that this node does not believe them: a sentence each',
        }),
      }),
      Type.Null(),
    ],
    { description: 'Null on a server of its own' },
  ),
  settings: Type.Array(
    Type.Object({
      name: Type.String(),
      value: Type.Union([Type.String(), Type.Null()], {
        description:
          'The text that it was given; null where it was not, and for what is secret or looks like a key',
      }),
      default: Type.String({ description: 'In words' }),
      is_secret: Type.Boolean(),
      is_set: Type.Boolean(),
    }),
  ),
})
export type ServerInfo = Static<typeof ServerInfo>
documented('ServerInfo', ServerInfo, {
  server: {
    version: '0.4.0',
    node: '22.12.0',
    started_at_ms: 1_760_000_000_000,
    read_only: false,
    serving: true,
    shards: [{ agents: 3, records: 1_200, deaths: 0 }],
    features: {
      auth: true,
      mail: false,
      oauth_google: false,
      oauth_github: false,
      passkeys: false,
      postgres: false,
      server_log: true,
      tls: false,
      console: true,
      data_open: false,
    },
    open_modes: [],
    license: {
      state: 'valid',
      licensee: 'Example Ltd',
      expires_at_ms: 1_790_000_000_000,
      features: ['auth'],
      authority: null,
    },
    last_backup_copy_at_ms: null,
    cluster: {
      node: 'a',
      members: [
        {
          node: 'a',
          address: 'https://a.example',
          version: '0.4.0',
          serves_since_ms: 1_760_000_000_000,
          owned_shards: [0, 3],
          held_shards: [0, 1, 3],
          lag_secs: 0.1,
        },
        {
          node: 'b',
          address: 'https://b.example',
          version: '0.4.0',
          serves_since_ms: 1_760_000_000_500,
          owned_shards: [1, 2],
          held_shards: [0, 1, 2, 3],
          lag_secs: 0.2,
        },
      ],
      differences: [],
      faults: [],
    },
    settings: [
      { name: 'SERVICE_PORT', value: '8787', default: '8787', is_secret: false, is_set: true },
      {
        name: 'SERVICE_ROOT_API_KEY',
        value: null,
        default: 'made at the first start',
        is_secret: true,
        is_set: true,
      },
    ],
  },
})
