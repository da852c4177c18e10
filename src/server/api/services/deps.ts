import type { Clock } from '../../../foundation/base/index.ts'
import type { Database } from '../../../foundation/database/index.ts'
import type { SecretStore } from '../../../foundation/secrets/index.ts'
import type { AccountDependencies } from '../../../platform/accounts/index.ts'
import type { CallLogWatch, CallLogWriter } from '../../../platform/call-log/index.ts'
import type { AccountCascade, InstallationDeleteDeps, IntegrationDeps } from '../../../platform/integrations/index.ts'
import type { LinkDependencies } from '../../../platform/links/index.ts'
import type { CascadeDelete } from '../../../platform/tenancy/index.ts'
import type { UnifiedMappings } from '../../../platform/unified-config/index.ts'
import type { DaemonsDeps } from '../../../sync/daemons/index.ts'
import type { CreateRunDeps, RunWatch } from '../../../sync/runs/index.ts'
import type { UpdateDeps } from '../../../sync/schedules/index.ts'
import type { ToolServerAdminDeps } from '../../../tools/servers/index.ts'
import type { WebhookDeletionDeps, WebhookDeps } from '../../../webhooks/outbound/index.ts'
import type { ProxyCallDeps } from './proxy-calls.ts'
import type { UnifiedCallDeps } from './unified-calls.ts'

/** The dependencies of all services; each service picks its own. */
export interface ServiceDeps {
  readonly database: Database
  readonly secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor' | 'sealer'>
  readonly clock: Clock
  readonly callLog: Pick<CallLogWriter, 'flush' | 'onDrop' | 'onRequest'>
  readonly callLogWatch: Pick<CallLogWatch, 'watch'>
  readonly contents: CascadeDelete
  readonly integrations: IntegrationDeps & InstallationDeleteDeps & { readonly accounts: AccountCascade }
  readonly accounts: AccountDependencies
  readonly links: LinkDependencies
  readonly triggers: UpdateDeps
  readonly runs: CreateRunDeps
  readonly runWatch: Pick<RunWatch, 'watch'>
  readonly daemons: DaemonsDeps
  readonly webhooks: WebhookDeps & WebhookDeletionDeps
  readonly calls: ProxyCallDeps
  readonly unifiedCalls: UnifiedCallDeps
  readonly toolServers: ToolServerServiceDeps
  readonly unifiedMappings: UnifiedMappings
}

/** The dependencies of operations that a client may repeat with the same `request_id`. */
export type IdempotencyDeps = Pick<ServiceDeps, 'database' | 'secrets'>

/** What the service of tool servers takes. */
interface ToolServerServiceDeps extends ToolServerAdminDeps {
  /** Of this service, without a trailing slash. */
  readonly publicUrl: () => string
}
