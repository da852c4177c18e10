import { createEvaluator, type Evaluator } from '../engine/expressions/index.ts'
import type { Clock } from '../foundation/base/index.ts'
import {
  createEgressPolicy,
  createHttpClient,
  findUrlViolation,
  type HttpClient,
  parseConnectTo,
} from '../foundation/egress/index.ts'
import type { SecretStore } from '../foundation/secrets/index.ts'
import type { Logger } from '../foundation/telemetry/index.ts'
import { createTokenHosts, type TokenHosts } from '../platform/accounts/index.ts'
import {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
  type IntegrationCache,
} from '../platform/integrations/index.ts'
import {
  type CatalogCache,
  callbackUriOf,
  createCatalogCache,
  createFormOptionsCache,
  type FormOptionsCache,
} from '../platform/links/index.ts'
import { type ContextValueStore, createContextValueStore, type ObjectStore } from '../platform/objects/index.ts'
import { createUnifiedMappings, type UnifiedMappings } from '../platform/unified-config/index.ts'
import type { Config } from './config/config.ts'
import { PublicAddress } from './config/public-address.ts'
import { openObjectStore } from './open-object-store.ts'

/**
 * What a process has once, whatever connections its statements use: the HTTP agent, the sandboxes, the caches, the object store.
 * What one part of the process changes, every other part sees at once.
 */
export interface ProcessResources {
  readonly clock: Clock
  readonly logger: Logger
  readonly config: Config
  readonly secrets: SecretStore
  /** Why no request may be sent to the URL; `undefined` when it may. */
  readonly findUrlViolation: (url: string) => string | undefined
  readonly http: HttpClient
  readonly tokenHosts: TokenHosts
  readonly evaluator: Evaluator
  readonly publicAddress: PublicAddress
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  readonly definitions: DefinitionCache
  readonly integrationCache: IntegrationCache
  readonly unifiedMappings: UnifiedMappings
  readonly formOptions: FormOptionsCache
  readonly catalog: CatalogCache
  readonly objects: ObjectStore
  readonly contextValues: ContextValueStore
}

/** Opens them; nothing is sent or started yet. */
export function createResources(
  config: Config,
  secrets: SecretStore,
  logger: Logger,
  clock: Clock,
): ProcessResources & AsyncDisposable {
  const policy = createEgressPolicy({ allow: config.egressAllow })
  const http = createHttpClient({
    policy,
    connectTo: parseConnectTo(config.egressConnectTo, config.egressAllow),
    proxies: config,
  })
  if (config.egressConnectTo !== '')
    logger.warn(
      { connect_to: config.egressConnectTo },
      'PATCHBAY_EGRESS_CONNECT_TO diverts outbound calls: never in production',
    )
  const evaluator = createEvaluator({
    clock,
    onQuarantine: ({ owner, hash }) =>
      logger.warn({ owner, hash }, 'an expression is blocked: it kept killing its sandbox'),
  })
  const publicAddress = new PublicAddress(config)
  const publicUrl = () => publicAddress.url
  const definitions = createDefinitionCache(secrets, () => ({
    redirect_uri: callbackUriOf({ publicUrl }),
    public_url: publicUrl(),
  }))
  const objects = openObjectStore(config)
  return {
    clock,
    logger,
    config,
    secrets,
    findUrlViolation: (url) => findUrlViolation(policy, url),
    http,
    tokenHosts: createTokenHosts(),
    evaluator,
    publicAddress,
    publicUrl,
    definitions,
    integrationCache: createIntegrationCache(),
    unifiedMappings: createUnifiedMappings({ clock }),
    formOptions: createFormOptionsCache(clock),
    catalog: createCatalogCache(definitions),
    objects,
    contextValues: createContextValueStore(secrets, objects),
    async [Symbol.asyncDispose]() {
      await evaluator[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
      await objects[Symbol.asyncDispose]()
    },
  }
}
