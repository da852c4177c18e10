/**
 * Where state lives: the connection pool, migrations, the embedded server and one file of documented statements per
 * table. Only this room knows Knex and pg; it returns records, never rows or query builders, and decides nothing.
 */
export { Database, type DatabaseOptions, type DatabaseTarget, type Tx } from './database.ts'
export {
  isDatabaseUnavailable,
  isForeignKeyViolation,
  isLockTimeout,
  isStatementTimeout,
  isUniqueViolation,
  mapDatabaseError,
} from './database-errors.ts'
export { DatabaseHealthCheck } from './database-watch.ts'
export {
  createDataDirectory,
  DataDirectoryLock,
  type EmbeddedServer,
  startEmbeddedServer,
} from './embedded/index.ts'
export { parseEtag, toEtag } from './etag.ts'
export {
  decodeIdPageToken,
  decodePageToken,
  encodePageToken,
  type ListPage,
  type ListPageRequest,
  type PageCursor,
  readPageSize,
  toPage,
} from './keyset.ts'
export { migrate } from './migrate.ts'
export { mapForeignKeyToInUse } from './refuse-while-used.ts'
export { isDataError } from './row-error.ts'
export { createSecretStore, findUnreadableKey, type SecretStore } from './secrets.ts'
export {
  acquireTokenLease,
  claimDueTokens,
  completeTokenRefresh,
  failTokenRefresh,
  resetToken,
  type TokenLease,
  type TokenLeaseAttempt,
  type TokenLeaseRequest,
  type TokenTimes,
} from './tables/account-token.ts'
export {
  type ActiveToken,
  type ApiTokenRecord,
  deleteApiTokenRow,
  findActiveToken,
  findApiToken,
  insertApiToken,
  revokeApiTokenRow,
  selectApiTokens,
  touchApiToken,
  updateApiTokenRow,
} from './tables/api-token.ts'
export {
  type AccountRef,
  type ActivationLease,
  type ActivationPostponement,
  claimConnectingAccount,
  postponeActivation,
  storePhaseResult,
} from './tables/connecting-account.ts'
export {
  type ActiveDaemon,
  type ActiveLease,
  type DaemonRecord,
  deleteStaleDaemons,
  findActiveLeases,
  findDraining,
  insertDaemon,
  type NewDaemon,
  selectDaemons,
  touchDaemon,
} from './tables/daemon.ts'
export { type AwaitedGroup, countClaimable, type DaemonGroupRecord, selectDaemonGroups } from './tables/daemon-group.ts'
export {
  DAY_TABLES,
  type DayTable,
  deleteOrphanedCheckpoints,
  dropDay,
  emptyDefaultPartition,
  ensureDayPartitions,
  hasUnfinishedRuns,
  listDaysBefore,
} from './tables/day-partition.ts'
export {
  claimDueTriggers,
  type DueCursor,
  type DueTrigger,
  findDueTrigger,
  findNextDue,
  type NextDue,
} from './tables/due-trigger.ts'
export {
  deleteEnvironmentRow,
  ENVIRONMENT_NAME_CONSTRAINT,
  type EnvironmentRecord,
  type EnvironmentScope,
  findEnvironment,
  findEnvironmentByName,
  insertEnvironment,
  selectEnvironments,
  updateEnvironmentRow,
} from './tables/environment.ts'
export {
  type DefinitionVersions,
  deleteEnvironmentIntegrationRow,
  type EnvironmentIntegrationFilter,
  type EnvironmentIntegrationRecord,
  findDefinitionVersions,
  findEnvironmentIntegration,
  findEnvironmentIntegrationOf,
  insertEnvironmentIntegration,
  listInstallationsOf,
  listInstalledEnvironments,
  lockEnvironmentIntegration,
  selectEnvironmentIntegrations,
  updateEnvironmentIntegrationRow,
} from './tables/environment-integration.ts'
export {
  deleteOldIdempotencyKeys,
  findIdempotencyKey,
  insertIdempotencyKey,
  storeIdempotentResponse,
} from './tables/idempotency-key.ts'
export {
  type AccountFilter,
  type AccountStatus,
  type AccountWithDefinition,
  type AccountWithSecrets,
  type AuthenticationMethod,
  deleteIntegratedAccountRow,
  type ForbiddenError,
  findAccountsWithSecrets,
  findIntegratedAccount,
  type IntegratedAccountRecord,
  insertIntegratedAccount,
  listIntegratedAccountIds,
  type NewIntegratedAccount,
  type Region,
  type StatusTransition,
  selectIntegratedAccounts,
  storeForbiddenError,
  transitionAccountStatus,
  updateIntegratedAccountRow,
} from './tables/integrated-account.ts'
export {
  type AccountHistoryRecord,
  insertAccountHistory,
  listAccountHistory,
} from './tables/integrated-account-history.ts'
export {
  deleteIntegrationRow,
  findIntegration,
  findIntegrationByName,
  findIntegrations,
  INTEGRATION_NAME_CONSTRAINT,
  type IntegrationRecord,
  insertIntegration,
  listIntegrationIdsOfTeam,
  listVisibleIntegrations,
  type Sharing,
  updateIntegrationRow,
} from './tables/integration.ts'
export {
  deleteIntegrationGrantRow,
  findIntegrationGrant,
  type GrantCursor,
  type IntegrationGrantRecord,
  insertIntegrationGrant,
  selectIntegrationGrants,
} from './tables/integration-grant.ts'
export { countQueueDepth, findOldestDueAge, readServerVersion } from './tables/operating.ts'
export {
  advancePreviousRuns,
  deleteExpiredPreviousRuns,
  findPreviousRunDates,
} from './tables/previous-run.ts'
export {
  claimItems,
  countWaiting,
  enqueueItems,
  findAttemptBases,
  type LeaseKey,
  type LeaseSettlement,
  lockExpiredLeases,
  renewLeases,
  type SettledItem,
  settleLeases,
  type TakenLease,
  type WaitingItem,
} from './tables/queue-statements.ts'
export { type CarriedValues, type QueueSql, queueSql } from './tables/queue-table.ts'
export {
  blockWindow,
  deleteIdleWindows,
  findWindowState,
  type RateLimitWindow,
  type RateLimitWindowState,
  returnToWindow,
  takeFromWindow,
} from './tables/request-budget.ts'
export {
  acquireConcurrencySlot,
  type ConcurrencySlot,
  deleteExpiredSlots,
  releaseConcurrencySlot,
} from './tables/request-slot.ts'
export {
  findRunEndings,
  markRunsRunning,
  type RunWork,
  saveRunProgress,
  updateSettledRuns,
} from './tables/run-execution.ts'
export { dropLeases, RUN_QUEUE, type RunCarried, requestStop } from './tables/run-queue.ts'
export type {
  ClaimedRun,
  DecidedEnding,
  ErrorHandling,
  ResourceStats,
  Run,
  RunDestination,
  RunError,
  RunStatus,
} from './tables/run-record.ts'
export { findAccountState, findRunReferences, hasWebhook } from './tables/run-subject.ts'
export { findRunVersions } from './tables/run-version.ts'
export { findRunWaits, type RunWaitRow } from './tables/run-wait.ts'
export type { SecretRef } from './tables/secret.ts'
export {
  deleteSyncJobRow,
  findSyncJob,
  insertSyncJob,
  listInstalledConfigs,
  listSyncJobRows,
  lockSyncJob,
  type SyncJobChange,
  type SyncJobRecord,
  updateSyncJobRow,
} from './tables/sync-job.ts'
export {
  deleteTrigger,
  findTrigger,
  insertTrigger,
  listTriggers,
  lockTrigger,
  type TriggerFilter,
  type TriggerRecord,
  updateTriggerDestination,
  updateTriggerSettings,
} from './tables/sync-job-cron-trigger.ts'
export {
  findRun,
  findRuns,
  insertManualRun,
  listRuns,
  markStopped,
  type NewRun,
  type RunFilter,
  type RunRecord,
  requeueRun,
} from './tables/sync-job-run.ts'
export {
  deleteTeamRow,
  findOperatorTeam,
  findTeam,
  findTeams,
  insertOperatorTeam,
  insertTeam,
  selectTeams,
  type TeamFields,
  type TeamRecord,
  updateTeamRow,
} from './tables/team.ts'
export {
  findTicksWithRun,
  insertMissedTicks,
  insertTicks,
  type NewTick,
  type TriggerTicks,
} from './tables/tick.ts'
export { listTickLedger, type TickLedgerEntry } from './tables/tick-ledger.ts'
export {
  deleteRemainsOfEnvironment,
  deleteTriggersOf,
  stopRunsOfAccount,
} from './tables/trigger-removal.ts'
export {
  lockSchedule,
  suspendSchedule,
  updateLastRun,
  updateLastRunStatus,
  updateSchedule,
} from './tables/trigger-schedule.ts'
export {
  deleteWebhookRow,
  findWebhook,
  insertWebhook,
  lockWebhook,
  selectWebhooks,
  updateWebhookRow,
  type WebhookChange,
  type WebhookRecord,
} from './tables/webhook.ts'
export { deleteWorker, touchWorker } from './tables/worker.ts'
