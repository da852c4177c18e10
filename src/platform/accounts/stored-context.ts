import { type Failure, invalidFields } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { exceedsJsonSize, JSON_DEPTH_MAX, type JsonObject } from '../../foundation/json/index.ts'
import type { StoredContextValues } from '../objects/context-values.ts'
import type { AccountDependencies } from './dependencies.ts'
import {
  type AccountPatch,
  type AccountRef,
  type AccountWithDefinition,
  type IntegratedAccountRecord,
  updateIntegratedAccountRow,
} from './sql/integrated-account.ts'

/** What reading and writing the context takes. */
export type ContextDependencies = Pick<AccountDependencies, 'contextValues'>

/** Characters of JSON of a context without its keys in the object store: every call reads it whole. */
export const CONTEXT_LENGTH_MAX = 1024 * 1024

/** As far as its context is concerned. */
type AccountContext = Pick<IntegratedAccountRecord, 'id' | 'environmentId' | 'context' | 'objectStoreContextFields'>

/**
 * Changes an account: its row, and the context keys that live in the object store. The lock of the row
 * orders concurrent changes. An account without such keys costs the one statement.
 *
 * @returns `undefined` as `updateIntegratedAccountRow`
 * @throws Failure INVALID_FIELD for a value that is too large, or one that makes the context too large
 */
export async function updateAccount(
  { contextValues }: ContextDependencies,
  tx: Tx,
  { environmentId, id }: AccountRef,
  patch: AccountPatch,
): Promise<AccountWithDefinition | undefined> {
  const updated = await updateIntegratedAccountRow(tx, environmentId, id, patch)
  if (updated === undefined || patch.context === undefined) return updated
  if (Object.keys(patch.context.keys).length > 0) assertContextSize(updated.context)
  const { stored } = splitContext(updated, patch.context.keys)
  const removed = patch.context.removed.filter((key) => updated.objectStoreContextFields.includes(key))
  if (Object.keys(stored).length > 0) await contextValues.put(tx, updated, stored)
  if (removed.length > 0) await contextValues.remove(tx, updated, removed)
  return updated
}

/** @param inline of the row @throws Failure INVALID_FIELD when it is too large */
export function assertContextSize(inline: JsonObject): void {
  if (!exceedsJsonSize(inline, CONTEXT_LENGTH_MAX, JSON_DEPTH_MAX)) return
  const advice = 'remove keys, or name large ones in object_store_context_fields'
  throw invalidFields([
    {
      field: 'context',
      description: `would have more than ${CONTEXT_LENGTH_MAX} characters of JSON together: ${advice}`,
      rule: 'context.size',
    },
  ])
}

/** The keys of a context that live in the account's row, and those that live in the object store. */
export function splitContext(
  { objectStoreContextFields: fields }: Pick<AccountContext, 'objectStoreContextFields'>,
  context: JsonObject,
): { readonly inline: JsonObject; readonly stored: JsonObject } {
  if (fields.length === 0) return { inline: context, stored: {} }
  const entries = Object.entries(context)
  return {
    inline: Object.fromEntries(entries.filter(([key]) => !fields.includes(key))),
    stored: Object.fromEntries(entries.filter(([key]) => fields.includes(key))),
  }
}

/** An account with its whole context. */
export type WithWholeContext<Account> = Account & {
  /** Why keys are absent from the context although they have a value, by key. */
  readonly contextErrors: ReadonlyMap<string, Failure>
}

const NO_VALUES: StoredContextValues = { values: {}, errors: new Map() }

/** Adds the context keys in the object store to accounts as they are shown, in one statement, or none when no account has any. */
export async function withWholeContexts<Account extends AccountContext>(
  { contextValues }: ContextDependencies,
  tx: Db,
  accounts: readonly Account[],
): Promise<readonly WithWholeContext<Account>[]> {
  const owners = accounts.filter(({ objectStoreContextFields }) => objectStoreContextFields.length > 0)
  const found = owners.length === 0 ? new Map<string, StoredContextValues>() : await contextValues.read(tx, owners)
  return accounts.map((account) => {
    const { values, errors } = found.get(account.id) ?? NO_VALUES
    return { ...account, context: { ...account.context, ...values }, contextErrors: errors }
  })
}

/** `withWholeContexts` for one account. */
export async function withWholeContext<Account extends AccountContext>(
  deps: ContextDependencies,
  tx: Db,
  account: Account,
): Promise<WithWholeContext<Account>> {
  const [whole] = await withWholeContexts(deps, tx, [account])
  if (whole === undefined) throw new Error('one account without its context')
  return whole
}

/**
 * The account with its whole context, for calls: reading a key whose value cannot be read throws why (CONTEXT_OBJECT_MISSING,
 * OBJECT_STORE_UNAVAILABLE, SECRET_UNREADABLE), so that a call which needs the key fails and any other does not.
 */
export async function withContextForCall<Account extends AccountContext>(
  deps: ContextDependencies,
  tx: Db,
  account: Account,
): Promise<Account> {
  if (account.objectStoreContextFields.length === 0) return account
  const { contextErrors, context } = await withWholeContext(deps, tx, account)
  return { ...account, context: withThrowingKeys(context, contextErrors) }
}

function withThrowingKeys(context: JsonObject, errors: ReadonlyMap<string, Failure>): JsonObject {
  const keys = [...errors].map(([key, error]): [string, PropertyDescriptor] => {
    const get = () => {
      throw error
    }
    return [key, { enumerable: true, configurable: true, get }]
  })
  return Object.defineProperties({ ...context }, Object.fromEntries(keys))
}

/** A context with other values of some keys. The keys that cannot be read stay so, and are not read. */
export function withContextKeys(context: JsonObject, keys: JsonObject): JsonObject {
  const copy: JsonObject = Object.defineProperties({}, Object.getOwnPropertyDescriptors(context))
  return Object.defineProperties(copy, Object.getOwnPropertyDescriptors(keys))
}
