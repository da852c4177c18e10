/**
 * Where state lives: the connection pool, migrations, the embedded server and one file of documented statements per
 * table. Only this room knows Knex and pg; it returns records, never rows or query builders, and decides nothing.
 */
export { Database, type DatabaseOptions, type DatabaseTarget, type Tx } from './database.ts'
export {
  failureFromDatabase,
  isDatabaseUnavailable,
  isForeignKeyViolation,
  isLockTimeout,
  isStatementTimeout,
  isUniqueViolation,
} from './database-errors.ts'
export { DatabaseWatch } from './database-watch.ts'
export {
  DataDirectoryLock,
  type EmbeddedServer,
  makeDataDirectory,
  startEmbedded,
} from './embedded/index.ts'
export { etagOf, versionOfEtag } from './etag.ts'
export {
  decodeIdToken,
  decodePageToken,
  encodePageToken,
  type Page,
  type PageCursor,
  type PageRequest,
  pageOf,
  pageSizeOf,
} from './keyset.ts'
export { migrate } from './migrate.ts'
export { refuseWhileUsed } from './refuse-while-used.ts'
export { isRowError } from './row-error.ts'
export { createSecrets, findUnreadableKey, type Secrets } from './secrets.ts'
export {
  claimDueTokens,
  type LeaseAttempt,
  type LeaseRequest,
  resetToken,
  settleToken,
  settleTokenRefusal,
  type TokenLease,
  type TokenTimes,
  takeTokenLease,
} from './tables/account-token.ts'
export {
  type ApiTokenRecord,
  deleteApiToken,
  findApiToken,
  findTokenGrant,
  insertApiToken,
  listApiTokens,
  revokeApiToken,
  type TokenGrant,
  touchApiToken,
  updateApiToken,
} from './tables/api-token.ts'
export {
  type AccountRef,
  type ConnectingLease,
  type ConnectingPause,
  claimConnectingAccount,
  postponeConnecting,
  storeActionResult,
} from './tables/connecting-account.ts'
export {
  type DaemonRecord,
  deleteUnheardDaemons,
  findHeldLeases,
  findResting,
  type HeldLease,
  insertDaemon,
  listDaemons,
  type NewDaemon,
  type SeenDaemon,
  seeDaemon,
} from './tables/daemon.ts'
export { type AwaitedGroup, countClaimable, type DaemonGroupRecord, listDaemonGroups } from './tables/daemon-group.ts'
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
  claimDue,
  type DueHead,
  type DuePosition,
  type DueTrigger,
  findDue,
  probeDue,
} from './tables/due-trigger.ts'
export {
  deleteEnvironment,
  ENVIRONMENT_NAME_CONSTRAINT,
  type EnvironmentRecord,
  findEnvironment,
  findEnvironmentByName,
  insertEnvironment,
  listEnvironments,
  type Scope,
  updateEnvironment,
} from './tables/environment.ts'
export {
  type DefinitionVersions,
  deleteEnvironmentIntegration,
  type EnvironmentIntegrationFilter,
  type EnvironmentIntegrationRecord,
  findDefinitionVersions,
  findEnvironmentIntegration,
  findEnvironmentIntegrationOf,
  insertEnvironmentIntegration,
  listEnvironmentIntegrations,
  listInstallationsOf,
  listInstalledEnvironments,
  lockEnvironmentIntegration,
  updateEnvironmentIntegration,
} from './tables/environment-integration.ts'
export {
  claimIdempotencyKey,
  deleteOldIdempotencyKeys,
  findIdempotencyKey,
  storeIdempotentAnswer,
} from './tables/idempotency-key.ts'
export {
  type AccountStatus,
  type AccountWithSecrets,
  type AccountWithVersions,
  type AuthenticationMethod,
  deleteIntegratedAccount,
  type ForbiddenError,
  findAccountsWithSecrets,
  findIntegratedAccount,
  type IntegratedAccountFilter,
  type IntegratedAccountRecord,
  insertIntegratedAccount,
  listIntegratedAccountIds,
  listIntegratedAccounts,
  type NewIntegratedAccount,
  type Region,
  type StatusStep,
  stepAccountStatus,
  storeForbiddenError,
  updateIntegratedAccount,
} from './tables/integrated-account.ts'
export {
  type AccountHistoryRecord,
  insertAccountHistory,
  listAccountHistory,
} from './tables/integrated-account-history.ts'
export {
  deleteIntegration,
  findIntegration,
  findIntegrationByName,
  findIntegrations,
  INTEGRATION_NAME_CONSTRAINT,
  type IntegrationRecord,
  insertIntegration,
  listIntegrationIdsOfTeam,
  listVisibleIntegrations,
  type Sharing,
  updateIntegration,
} from './tables/integration.ts'
export {
  deleteIntegrationGrant,
  findIntegrationGrant,
  type GrantPosition,
  type IntegrationGrantRecord,
  insertIntegrationGrant,
  listIntegrationGrants,
} from './tables/integration-grant.ts'
export { countQueueDepth, findOldestDueAge, readServerVersion } from './tables/operating.ts'
export {
  deleteExpiredPreviousRuns,
  findPreviousRunDates,
  movePreviousRuns,
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
  type BudgetState,
  type BudgetWindow,
  blockBudget,
  deleteIdleBudgets,
  findBudget,
  returnToBudget,
  takeFromBudget,
} from './tables/request-budget.ts'
export { deleteExpiredSlots, type RequestSlot, releaseSlot, takeSlot } from './tables/request-slot.ts'
export {
  beginRuns,
  concludeRuns,
  findRunEndings,
  type RunWork,
  saveRunProgress,
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
export { findAccountState, findRunSubject, hasWebhook } from './tables/run-subject.ts'
export { findRunVersions } from './tables/run-version.ts'
export { findRunWaits, type RunWait } from './tables/run-wait.ts'
export type { SecretRef } from './tables/secret.ts'
export {
  deleteSyncJob,
  findSyncJob,
  insertSyncJob,
  listInstalledConfigs,
  listSyncJobs,
  lockSyncJob,
  type SyncJobChange,
  type SyncJobRecord,
  updateSyncJob,
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
  markCreatedAgain,
  markStopped,
  type NewRun,
  type RunFilter,
  type RunRecord,
} from './tables/sync-job-run.ts'
export {
  deleteTeam,
  findOperatorTeam,
  findTeam,
  findTeams,
  insertOperatorTeam,
  insertTeam,
  listTeams,
  type TeamFields,
  type TeamRecord,
  updateTeam,
} from './tables/team.ts'
export {
  findTicksWithRun,
  insertMissedTicks,
  insertTicks,
  type NewTick,
  type TriggerTicks,
} from './tables/tick.ts'
export { type LedgerEntry, listLedger } from './tables/tick-ledger.ts'
export {
  deleteRemainsOfEnvironment,
  deleteTriggersOf,
  stopRunsOfAccount,
} from './tables/trigger-removal.ts'
export {
  lockSchedule,
  parkSchedule,
  showLastRun,
  showRunStatus,
  updateSchedule,
} from './tables/trigger-schedule.ts'
export {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  updateWebhook,
  type WebhookChange,
  type WebhookRecord,
} from './tables/webhook.ts'
export { forgetWorker, seeWorker } from './tables/worker.ts'
