import { Failure, suggest, type Violation } from '../../foundation/base/index.ts'

/** What an area of operations allows; `write` includes `read` of the same area. */
type Level = 'read' | 'write'

/** The areas of the contract's scopes with their levels; a test compares them with the option `(patchbay.v1.scope)` of all RPCs. */
const AREAS: Readonly<Record<string, readonly Level[]>> = {
  accounts: ['read', 'write'],
  api_tokens: ['read', 'write'],
  audit: ['read'],
  call_log: ['read'],
  catalog: ['read'],
  credentials: ['read'],
  daemons: ['read', 'write'],
  deliveries: ['read', 'write'],
  environments: ['read', 'write'],
  events: ['read', 'write'],
  inbound_events: ['read', 'write'],
  installations: ['read', 'write'],
  integrations: ['read', 'write'],
  links: ['read', 'write'],
  overview: ['read'],
  proxy: ['read', 'write'],
  runs: ['read', 'write'],
  sync_jobs: ['read', 'write'],
  tasks: ['read', 'write'],
  teams: ['read', 'write'],
  tool_servers: ['read', 'write'],
  triggers: ['read', 'write'],
  unified_mappings: ['read', 'write'],
  unified_models: ['read', 'write'],
  webhooks: ['read', 'write'],
}

/** All scopes, `<area>:<level>`, in alphabetical order. */
export const SCOPES: readonly string[] = Object.entries(AREAS).flatMap(([area, levels]) =>
  levels.map((level) => `${area}:${level}`),
)

/** All scopes by one name, those included that later versions add. */
const ALL_SCOPES = '*'

/** Reading records: neither calls of third parties nor their tokens and keys. */
const READS_RECORDS = SCOPES.filter(
  (scope) => scope.endsWith(':read') && scope !== 'proxy:read' && scope !== 'credentials:read',
)

/** The scopes of each preset; those of `full` are all. */
const PRESETS = {
  full: [ALL_SCOPES],
  read: READS_RECORDS,
  proxy: ['accounts:read', 'catalog:read', 'proxy:read', 'proxy:write', 'unified_models:read'],
  daemon: ['daemons:read', 'daemons:write', 'proxy:read'],
  connect: ['accounts:read', 'catalog:read', 'links:read', 'links:write'],
  tools: ['accounts:read', 'catalog:read', 'proxy:read', 'proxy:write', 'tool_servers:read', 'tool_servers:write'],
  deploy: [
    'catalog:read',
    ...[
      'installations',
      'integrations',
      'sync_jobs',
      'tasks',
      'unified_mappings',
      'unified_models',
      'webhooks',
    ].flatMap((area) => [`${area}:read`, `${area}:write`]),
  ],
  operator: [
    ...READS_RECORDS,
    ...['accounts', 'deliveries', 'inbound_events', 'runs', 'tasks', 'triggers'].map((area) => `${area}:write`),
  ].sort(),
} as const satisfies Record<string, readonly string[]>

/** The name of a set of scopes. */
export type TokenPreset = keyof typeof PRESETS

/** The names of the presets. */
export const TOKEN_PRESETS = Object.keys(PRESETS) as readonly TokenPreset[]

/** What a new token may do: a preset, or scopes one by one. */
export type ScopeChoice = { readonly preset: TokenPreset } | { readonly scopes: readonly string[] }

/** What a caller may do: its scopes with all that they include; absent: everything. */
export type GrantedScopes = ReadonlySet<string> | undefined

/** Areas whose operations concern one account, or the accounts of a tenant or an integration: the others know no limits. */
const LIMITABLE_AREAS: ReadonlySet<string> = new Set([
  'accounts',
  'catalog',
  'credentials',
  'links',
  'proxy',
  'runs',
  'triggers',
])

/** Limits a token to the accounts that meet each of these that is given. */
export interface TokenLimits {
  /** Empty: accounts of any tenant. */
  readonly tenantIds: readonly string[]
  /** Names. Empty: accounts of any integration. */
  readonly integrations: readonly string[]
  /** Null: any account. */
  readonly integratedAccountId: string | null
}

/** A violation for each scope that a token with limits cannot have. @param field where the choice is given */
export function findUnlimitableScopes(choice: ScopeChoice, field: string): readonly Violation[] {
  const scopes = storedScopes(choice).scopes.filter((scope) => !LIMITABLE_AREAS.has(scope.split(':')[0] ?? ''))
  if (scopes.length === 0) return []
  const areas = [...LIMITABLE_AREAS].join(', ')
  const description = `a token with limits has scopes of ${areas} alone, and not ${scopes.join(', ')}`
  return [{ field, description, rule: 'unlimited_scope' }]
}

/** What is stored of a choice. */
export interface StoredScopes {
  readonly preset: TokenPreset | null
  /** In alphabetical order; `*` alone for all. */
  readonly scopes: readonly string[]
}

/** The scopes that a choice comes to. The names were checked by `findUnknownScopes`. */
export function storedScopes(choice: ScopeChoice): StoredScopes {
  if ('preset' in choice) return { preset: choice.preset, scopes: PRESETS[choice.preset] }
  return { preset: null, scopes: [...choice.scopes].sort() }
}

/** The scopes with all that they include. */
export function grantedScopes(scopes: readonly string[]): GrantedScopes {
  if (scopes.includes(ALL_SCOPES)) return undefined
  const included = scopes.filter((scope) => scope.endsWith(':write')).map((scope) => scope.replace(/write$/, 'read'))
  return new Set([...scopes, ...included])
}

/** A violation for each name that is no scope. @param field where they are given */
export function findUnknownScopes(scopes: readonly string[], field: string): readonly Violation[] {
  return scopes.flatMap((scope, at) =>
    SCOPES.includes(scope)
      ? []
      : [{ field: `${field}[${at}]`, description: `is not a scope${suggest(scope, SCOPES)}`, rule: 'unknown_scope' }],
  )
}

/** @throws Failure SCOPE_REQUIRED unless the caller has the scope */
export function assertScope(caller: { readonly scopes: GrantedScopes }, scope: string): void {
  const missing = findMissingScope(caller, scope)
  if (missing !== undefined) throw missing
}

/** The failure SCOPE_REQUIRED unless the caller has the scope. */
export function findMissingScope({ scopes }: { readonly scopes: GrantedScopes }, scope: string): Failure | undefined {
  if (scopes === undefined || scopes.has(scope)) return undefined
  const message = `the token lacks the scope ${scope}: use one that was created with it`
  return new Failure('SCOPE_REQUIRED', message, { metadata: { scope } })
}

/** A token creates tokens that may do no more than itself. @throws Failure SCOPE_REQUIRED that names the first scope too many */
export function assertGrants(creator: { readonly scopes: GrantedScopes }, { scopes }: StoredScopes): void {
  const lacking = scopes.find((scope) => creator.scopes !== undefined && !creator.scopes.has(scope))
  if (lacking === undefined) return
  const message = `a token creates tokens that may do no more than itself, and this one lacks ${lacking === ALL_SCOPES ? 'most scopes' : lacking}`
  throw new Failure('SCOPE_REQUIRED', message, { metadata: { scope: lacking } })
}
