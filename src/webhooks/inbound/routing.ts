import { Failure } from '../../foundation/base/index.ts'
import type { AccountOfValue } from '../../platform/accounts/index.ts'
import type { ReceivingAccount, RoutedItem } from './effects.ts'
import type { InboundItem } from './mapping.ts'

/** Lines that one request may lead to: items times accounts. */
const ROUTED_MAX = 10_000
/** Accounts that the values of one request may lead to. */
export const LOOKUP_ACCOUNTS_MAX = 10_000

/** Where items go that name no account themselves. */
export type RoutingSource =
  /** The address of an account: everything is about that account. */
  | { readonly kind: 'account'; readonly account: ReceivingAccount }
  /** The address of an installation. */
  | {
      readonly kind: 'installation'
      /** The values of `context_lookup`; absent: the definition has none. */
      readonly lookup: { readonly field: string; readonly values: readonly string[] } | undefined
      /** Accounts by value, of all values of the request. */
      readonly accounts: ReadonlyMap<string, readonly ReceivingAccount[]>
      /** Values that accounts of several tenants have, none of them confirmed: they lead to no account. */
      readonly ambiguous: ReadonlySet<string>
    }

/** The values that have to be looked up for the items of a request: their own, and those of the request for the others. */
export function listLookupValues(items: readonly InboundItem[], ofDelivery: readonly string[]): readonly string[] {
  return [...new Set([...ofDelivery, ...items.flatMap(({ accounts }) => accounts)])]
}

/**
 * The found accounts by value. A value of the context may come from a form or a redirect, which the tenant's customer controls:
 * a value that accounts of several tenants have leads only to those for which the third party has confirmed it, or to none.
 *
 * @throws Failure EXPRESSION_FAILED when there are too many accounts to tell
 */
export function groupByValue(
  found: readonly AccountOfValue[],
): Pick<Extract<RoutingSource, { readonly kind: 'installation' }>, 'accounts' | 'ambiguous'> {
  if (found.length > LOOKUP_ACCOUNTS_MAX)
    throw new Failure('EXPRESSION_FAILED', `the request names more than ${LOOKUP_ACCOUNTS_MAX} accounts`)
  const accounts = new Map<string, readonly ReceivingAccount[]>()
  const ambiguous = new Set<string>()
  for (const [value, all] of Map.groupBy(found, (account) => account.value)) {
    const isOfOneTenant = new Set(all.map(({ tenantId }) => tenantId)).size === 1
    const trusted = isOfOneTenant ? all : all.filter(({ isConfirmed }) => isConfirmed)
    if (trusted.length > 0) accounts.set(value, trusted)
    else ambiguous.add(value)
  }
  return { accounts, ambiguous }
}

/**
 * Assigns the items of a request to accounts. An item that several accounts match is repeated for each; an item that none
 * matches stays, unrouted, once per value that was looked up.
 *
 * @throws Failure EXPRESSION_FAILED when that becomes too many
 */
export function routeItems(items: readonly InboundItem[], source: RoutingSource): readonly RoutedItem[] {
  const routed: RoutedItem[] = []
  for (const item of items) {
    routed.push(...routeItem(item, source))
    if (routed.length > ROUTED_MAX)
      throw new Failure(
        'EXPRESSION_FAILED',
        `the request leads to more than ${ROUTED_MAX} events: map fewer items or accounts`,
      )
  }
  return routed
}

function routeItem(item: InboundItem, source: RoutingSource): readonly RoutedItem[] {
  if (source.kind === 'account') return [assigned(item, null, source.account)]
  const values = item.accounts.length > 0 ? item.accounts : (source.lookup?.values ?? [])
  if (source.lookup === undefined) return [unrouted(item, values[0] ?? null, 'the definition has no context_lookup')]
  if (values.length === 0) return [unrouted(item, null, 'the request names no account: context_lookup found no value')]
  const { field } = source.lookup
  return values.flatMap((value): readonly RoutedItem[] => {
    const accounts = source.accounts.get(value) ?? []
    if (source.ambiguous.has(value))
      return [unrouted(item, value, `ambiguous: accounts of several tenants have this value in context.${field}`)]
    if (accounts.length === 0)
      return [unrouted(item, value, `no account of the installation has this value in context.${field}`)]
    return accounts.map((account) => assigned(item, value, account))
  })
}

function assigned(item: InboundItem, lookupValue: string | null, account: ReceivingAccount): RoutedItem {
  if (item.kind === 'record') return { state: 'routed', lookupValue, account, item }
  const { resource, since } = item
  const detail = since === null ? 'a sync is due' : `a sync is due; changed since ${since}`
  return { state: 'hint', lookupValue, account, resource, detail }
}

function unrouted(item: InboundItem, lookupValue: string | null, detail: string): RoutedItem {
  const recordId = item.kind === 'record' ? item.id : null
  return { state: 'unrouted', lookupValue, resource: item.resource, recordId, detail }
}
