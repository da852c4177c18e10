import { IntegratedAccountService } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import {
  type AccountDependencies,
  createIntegratedAccount,
  deleteIntegratedAccount,
  findReservedKeys,
  getIntegratedAccount,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
  refreshCredentials,
  runAccountActions,
  updateCredentials,
  updateIntegratedAccount,
} from '../../accounts/index.ts'
import type { JsonObject } from '../../base/index.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import {
  credentialsChangeFromProto,
  historyEntryToProto,
  integratedAccountChangeFromProto,
  integratedAccountFilterFromProto,
  integratedAccountInputFromProto,
  integratedAccountToProto,
} from './integrated-account.convert.ts'
import { viewFromProto } from './integration.convert.ts'
import { pageById, queryOf } from './page.ts'
import { versionFrom } from './values.convert.ts'

/** What the service needs. */
export interface IntegratedAccountServiceDeps extends IdempotencyDeps {
  readonly accounts: AccountDependencies
}

/** Connects customers' accounts and keeps them. */
export function integratedAccountService(deps: IntegratedAccountServiceDeps): ServiceDefinition {
  const { database, accounts } = deps
  return defineService(IntegratedAccountService, {
    createIntegratedAccount: {
      access: 'environment',
      check: ({ context }) => contextFindings(context),
      handle: (request, { principal }) => {
        const { createIntegratedAccount: method } = IntegratedAccountService.method
        const input = integratedAccountInputFromProto(request)
        return runIdempotent(deps, principal.environmentId, method, request, async (tx) =>
          integratedAccountToProto(await createIntegratedAccount(accounts, tx, principal, input)),
        )
      },
    },
    getIntegratedAccount: {
      access: 'environment',
      handle: async ({ id }, { principal }) =>
        integratedAccountToProto(await getIntegratedAccount(accounts, database.pool, principal, id)),
    },
    listIntegratedAccounts: {
      access: 'environment',
      handle: async (request, { principal }) => {
        const filter = integratedAccountFilterFromProto(request)
        const view = viewFromProto(request.view)
        const query = queryOf('integrated_account', principal.environmentId, { ...filter, view })
        const page = await pageById(query, request, (range) =>
          listIntegratedAccounts(database.pool, principal, filter, { ...range, view }),
        )
        return { integratedAccounts: page.items.map(integratedAccountToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateIntegratedAccount: {
      access: 'environment',
      check: ({ context }) => contextFindings(context),
      // One statement, so it needs no transaction of its own.
      handle: async (request, { principal }) => {
        const change = integratedAccountChangeFromProto(request)
        return integratedAccountToProto(await updateIntegratedAccount(accounts, database.pool, principal, change))
      },
    },
    updateIntegratedAccountCredentials: {
      access: 'environment',
      handle: async (request, { principal }) => {
        const change = credentialsChangeFromProto(request)
        return integratedAccountToProto(
          await database.transaction((tx) => updateCredentials(accounts, tx, principal, change)),
        )
      },
    },
    refreshIntegratedAccountCredentials: {
      access: 'environment',
      handle: async ({ id }, { principal }) =>
        integratedAccountToProto(await refreshCredentials(accounts, principal.environmentId, id)),
    },
    runIntegratedAccountActions: {
      access: 'environment',
      handle: async ({ id }, { principal }) =>
        integratedAccountToProto(
          await database.transaction((tx) => runAccountActions(accounts, tx, principal, { id })),
        ),
    },
    deleteIntegratedAccount: {
      access: 'environment',
      handle: async ({ id, etag, force }, { principal }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteIntegratedAccount(accounts, tx, principal, input))
        return {}
      },
    },
    listIntegratedAccountHistory: {
      access: 'environment',
      handle: async (request, { principal }) => {
        const { id } = request
        const query = queryOf('integrated_account_history', principal.environmentId, { id })
        const page = await pageById(query, request, (range) =>
          listIntegratedAccountHistory(database.pool, principal, id, range),
        )
        return { historyEntries: page.items.map(historyEntryToProto), nextPageToken: page.nextPageToken }
      },
    },
  })
}

/** Keys of a given context that are refused, to be told together with everything else that is wrong with the request. */
function contextFindings(context: JsonObject | undefined): readonly Finding[] {
  if (context === undefined) return []
  return findReservedKeys(context).map((violation) => ({ ...violation, reason: 'CONTEXT_KEY_RESERVED' }))
}
