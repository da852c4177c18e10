import {
  IntegratedAccountService,
  type ListIntegratedAccountsRequest,
} from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { type Failure, invalidFields } from '../../../foundation/base/index.ts'
import type { Db } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import {
  changeIntegratedAccount,
  createIntegratedAccount,
  deleteIntegratedAccount,
  findReservedKeys,
  getIntegratedAccount,
  type IntegratedAccount,
  issueAccessToken,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
  refreshCredentials,
  runAccountActions,
  updateCredentials,
  withWholeContext,
  withWholeContexts,
} from '../../../platform/accounts/index.ts'
import {
  checkPostConnectForm,
  getPostConnectForm,
  loadFormOptions,
  storePostConnectForm,
} from '../../../platform/links/index.ts'
import { readWebhookOverview, recreateSubscriptions } from '../../../platform/subscriptions/index.ts'
import { assertAccessTokensAllowed, issueBrowserToken } from '../../../platform/tenancy/index.ts'
import { accountKey, environmentCallerOf, environmentIdOf } from '../caller.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import {
  credentialsChangeFromProto,
  historyEntryToProto,
  integratedAccountChangeFromProto,
  integratedAccountFilterFromProto,
  integratedAccountInputFromProto,
  integratedAccountToProto,
} from './integrated-account.convert.ts'
import { viewFromProto } from './integration.convert.ts'
import { byId, listRpc } from './list-rpc.ts'
import { formOptionsRequestFromProto, formOptionsToProto, postConnectFormToProto } from './post-connect-form.convert.ts'
import { CALL_SCOPE, WRITE_SCOPE } from './proxy-calls.ts'
import { timestampFrom, versionFrom } from './values.convert.ts'

/** Lifetime of a token for a page in a browser, unless a shorter one is asked for. */
const BROWSER_TOKEN_SECONDS = 900

/** How long an issued token of a third party is valid at least, unless another time is asked for. */
const ACCESS_TOKEN_LIFETIME_SECONDS = 300

const NO_CONTEXT_ERRORS: ReadonlyMap<string, Failure> = new Map()

/** Connects and administers the accounts of customers. */
export function integratedAccountService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'accounts' | 'links'>,
): ServiceDefinition {
  const { database, accounts } = deps
  /** After the transaction of a change: values may have to be read from the object store. */
  const toAnswer = async (account: IntegratedAccount, tx: Db = database.pool) =>
    integratedAccountToProto({
      ...(await withWholeContext(accounts, tx, account)),
      webhooks: account.hasWebhooks === false ? undefined : await readWebhookOverview(tx, account),
    })
  const readAccounts = byId({
    list: 'integrated_account',
    owner: environmentIdOf,
    filter: (request: ListIntegratedAccountsRequest) => ({
      ...integratedAccountFilterFromProto(request),
      view: viewFromProto(request.view),
    }),
    read: (range, context, { view, ...filter }) =>
      listIntegratedAccounts(database.pool, environmentCallerOf(context), filter, { ...range, view }),
  })
  return defineService(
    IntegratedAccountService,
    {
      createIntegratedAccount: (request, context) => {
        const { createIntegratedAccount: method } = IntegratedAccountService.method
        const input = integratedAccountInputFromProto(request)
        return runIdempotent(deps, environmentIdOf(context), method, request, async (tx) => {
          const account = await createIntegratedAccount(accounts, tx, environmentCallerOf(context), input)
          return await toAnswer(account, tx)
        })
      },
      getIntegratedAccount: async ({ id }, context) =>
        toAnswer(await getIntegratedAccount(accounts, database.pool, environmentCallerOf(context), id)),
      listIntegratedAccounts: listRpc(
        IntegratedAccountService.method.listIntegratedAccounts,
        integratedAccountToProto,
        async (request, context) => {
          const page = await readAccounts(request, context)
          const items =
            viewFromProto(request.view) === 'full'
              ? await withWholeContexts(accounts, database.pool, page.items)
              : page.items.map((account) => ({ ...account, contextErrors: NO_CONTEXT_ERRORS }))
          return { ...page, items }
        },
      ),
      updateIntegratedAccount: async (request, context) => {
        const change = integratedAccountChangeFromProto(request)
        return toAnswer(await changeIntegratedAccount(accounts, database, environmentCallerOf(context), change))
      },
      updateIntegratedAccountCredentials: async (request, context) => {
        const change = credentialsChangeFromProto(request)
        return toAnswer(
          await database.transaction((tx) => updateCredentials(accounts, tx, environmentCallerOf(context), change)),
        )
      },
      refreshIntegratedAccountCredentials: async ({ id }, context) =>
        toAnswer(await refreshCredentials(accounts, environmentIdOf(context), id)),
      runIntegratedAccountActions: async ({ id, confirmIdentityChange: isIdentityChangeConfirmed }, context) => {
        const input = { id, isIdentityChangeConfirmed }
        return await toAnswer(
          await database.transaction((tx) => runAccountActions(accounts, tx, environmentCallerOf(context), input)),
        )
      },
      recreateWebhookSubscriptions: async ({ id }, context) => {
        const scope = environmentCallerOf(context)
        const { environmentId } = scope
        return await toAnswer(
          await database.transaction(async (tx) => {
            await recreateSubscriptions(accounts, tx, { environmentId, id })
            return await getIntegratedAccount(accounts, tx, scope, id)
          }),
        )
      },
      deleteIntegratedAccount: async ({ id, etag, force, keepGrant }, context) => {
        const input = { id, version: versionFrom(etag), force, keepsGrant: keepGrant }
        await database.transaction((tx) => deleteIntegratedAccount(accounts, tx, environmentCallerOf(context), input))
        return {}
      },
      listIntegratedAccountHistory: listRpc(
        IntegratedAccountService.method.listIntegratedAccountHistory,
        historyEntryToProto,
        byId({
          list: 'integrated_account_history',
          owner: environmentIdOf,
          filter: ({ id }) => ({ id }),
          read: (range, context, { id }) =>
            listIntegratedAccountHistory(database.pool, environmentCallerOf(context), id, range),
        }),
      ),
      issueBrowserToken: async ({ id, allowWrites, lifetimeSeconds = BROWSER_TOKEN_SECONDS }, context) => {
        const { id: accountId } = await getIntegratedAccount(accounts, database.pool, environmentCallerOf(context), id)
        const scopes = allowWrites ? [CALL_SCOPE, WRITE_SCOPE] : [CALL_SCOPE]
        const expiresAt = new Date(accounts.clock.now().getTime() + lifetimeSeconds * 1_000)
        const input = { accountId, scopes, expiresAt }
        const issued = await issueBrowserToken(database.pool, environmentCallerOf(context), input)
        return { ...issued, scopes: [...issued.scopes], expiresAt: timestampFrom(issued.expiresAt) }
      },
      issueAccessToken: async ({ id, minLifetimeSeconds = ACCESS_TOKEN_LIFETIME_SECONDS }, context) => {
        const { environmentId } = environmentCallerOf(context)
        context.values.set(accountKey, { environmentId, id })
        await getIntegratedAccount(accounts, database.pool, environmentCallerOf(context), id)
        await assertAccessTokensAllowed(database.pool, environmentId)
        const issued = await issueAccessToken(accounts, environmentId, id, minLifetimeSeconds * 1_000)
        return { ...issued, scopes: [...issued.scopes], expiresAt: issued.expiresAt && timestampFrom(issued.expiresAt) }
      },
      getPostConnectForm: async ({ id }, context) =>
        postConnectFormToProto(await getPostConnectForm(accounts, { environmentId: environmentIdOf(context), id })),
      listFormOptions: async (request, context) => {
        const account = { environmentId: environmentIdOf(context), id: request.id }
        context.values.set(accountKey, account)
        return formOptionsToProto(await loadFormOptions(deps.links, account, formOptionsRequestFromProto(request)))
      },
      submitPostConnectForm: async ({ id, values = {}, etag }, context) => {
        const account = { environmentId: environmentIdOf(context), id }
        const checked = await checkPostConnectForm(accounts, account, values, { path: 'values' })
        if (checked.kind === 'invalid') throw invalidFields(checked.violations)
        const form = { context: checked.context, version: versionFrom(etag) }
        return await toAnswer(await database.transaction((tx) => storePostConnectForm(accounts, tx, account, form)))
      },
    },
    {
      createIntegratedAccount: ({ context }) => contextFindings(context),
      updateIntegratedAccount: ({ context }) => contextFindings(context),
    },
  )
}

/** Findings about reserved keys of a context, reported with all others of the request. */
function contextFindings(context: JsonObject | undefined): readonly Finding[] {
  if (context === undefined) return []
  return findReservedKeys(context).map((violation) => ({ ...violation, reason: 'CONTEXT_KEY_RESERVED' }))
}
