import { LRUCache } from 'lru-cache'
import { hasShippedLogo } from '../../engine/catalog/index.ts'
import { type ConnectPlan, isClientConfigured, listTools } from '../../engine/definitions/index.ts'
import type { AuthenticationMethod } from '../../engine/formats/index.ts'
import { catchFailure, Failure, foldText } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { authenticationMethodOf } from '../accounts/credentials.ts'
import type { DefinitionCache, EffectiveDefinition } from '../integrations/definition-cache.ts'
import type { CatalogRow } from '../integrations/sql/catalog.ts'

/** Cache size; a description takes about a kilobyte. */
const DESCRIPTIONS_CACHED_MAX = 10_000

/** What a catalogue shows of an effective definition. Made once per version of integration and installation. */
export interface CatalogDescription {
  /** For people; the name where the definition has none. */
  readonly label: string
  /** Empty without one. */
  readonly text: string
  readonly tags: readonly string[]
  /** URL that definition or override give; absent: they give none. */
  readonly logoUrl: string | undefined
  /** The integration has the name of a shipped definition whose logo this service has, and none of its own. */
  readonly hasShippedLogo: boolean
  readonly iconUrl: string | undefined
  /** In the order of the definition; empty: accounts need no credentials. */
  readonly authMethods: readonly CatalogAuthMethod[]
  readonly resourceCount: number
  readonly methodCount: number
  readonly toolCount: number
  readonly receivesWebhooks: boolean
  readonly subscribesWebhooks: boolean
  /** All that a search looks at, as `foldText` gives it. */
  readonly searchText: string
}

/** One way of connecting an account. */
interface CatalogAuthMethod {
  /** Its key in the definition. */
  readonly credential: string
  /** Absent where the definition has none. */
  readonly label: string | undefined
  readonly authenticationMethod: AuthenticationMethod
  readonly isConnectable: boolean
}

/** A cache of descriptions by installation and versions. */
export interface CatalogCache {
  /** `undefined` for a definition that does not compile, and an installation that was just deleted. */
  find(tx: Db, row: CatalogRow): Promise<CatalogDescription | undefined>
}

/** Descriptions outlive the plans that they are made of: those are a hundred times as large, and fewer are kept. */
export function createCatalogCache(definitions: Pick<DefinitionCache, 'getVersion'>): CatalogCache {
  const descriptions = new LRUCache<string, CatalogDescription>({ max: DESCRIPTIONS_CACHED_MAX })
  return {
    async find(tx, row) {
      const { id: environmentIntegrationId, integrationVersion, installationVersion } = row
      const key = `${environmentIntegrationId} ${integrationVersion} ${installationVersion}`
      const cached = descriptions.get(key)
      if (cached !== undefined) return cached
      const definition = await catchFailure(() => definitions.getVersion(tx, { ...row, environmentIntegrationId }))
      if (definition instanceof Failure) return undefined
      const description = describeDefinition({ name: row.integrationName, category: row.category }, definition)
      descriptions.set(key, description)
      return description
    },
  }
}

/** Describes an effective definition for people who choose among many. */
export function describeDefinition(
  { name, category }: { readonly name: string; readonly category: string },
  { plan, config }: EffectiveDefinition,
): CatalogDescription {
  const label = textOf(config.label) ?? name
  const text = textOf(config.description) ?? ''
  const tags = textsOf(config.tags)
  const logoUrl = textOf(config.logo)
  const methodCounts = [...plan.resources.values()].map((methods) => methods.size)
  return {
    label,
    text,
    tags,
    logoUrl,
    hasShippedLogo: logoUrl === undefined && hasShippedLogo(name),
    iconUrl: textOf(config.icon),
    authMethods: plan.credentials.map((connect) => ({
      credential: connect.key,
      label: connect.label,
      authenticationMethod: authenticationMethodOf(connect),
      isConnectable: isConnectable(connect, config),
    })),
    resourceCount: methodCounts.length,
    methodCount: methodCounts.reduce((sum, count) => sum + count, 0),
    toolCount: listTools(config, { methods: [], tags: [] }).length,
    receivesWebhooks: plan.webhook !== undefined,
    subscribesWebhooks: plan.webhookSubscription !== undefined,
    searchText: foldText([name, label, text, category, ...tags].join(' ')),
  }
}

/** Whether a customer can connect by it: a token by consent needs a redirect, and that a client which is set up. */
export function isConnectable({ key, authorization, isTokenImported }: ConnectPlan, config: JsonObject): boolean {
  return authorization === undefined ? isTokenImported !== true : isClientConfigured(config, key)
}

/** Whether a description has every word of a search. @param words as `searchWords` gives them */
export function matchesSearch({ searchText }: CatalogDescription, words: readonly string[]): boolean {
  return words.every((word) => searchText.includes(word))
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : []
}
