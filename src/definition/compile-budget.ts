import { createHash } from 'node:crypto'
import { canonicalJson } from '../base/index.ts'
import type { BudgetDefinition } from './method-schema.ts'
import type { BudgetRule } from './plan.ts'

const WINDOW_SECONDS = { second: 1, minute: 60, hour: 3_600, day: 86_400 } as const
const KEY_LENGTH = 16

/**
 * The rules that count a call.
 *
 * @param called what is called; nothing for a path that no method describes, which only rules without `match` count
 * @param owner of rules that are the method's own and count nothing else; absent: shared by all that they match
 */
export function compileBudgets(
  definitions: BudgetDefinition | undefined,
  called: { readonly resource?: string; readonly method?: string },
  owner = '',
): BudgetRule[] {
  const counted = (definitions ?? []).filter(
    ({ match }) =>
      (match?.resource ?? called.resource) === called.resource && (match?.method ?? called.method) === called.method,
  )
  return counted.map((definition) => {
    const { limit, per, scope } = definition
    const seconds = typeof per === 'number' ? per : WINDOW_SECONDS[per]
    return { key: budgetKey(owner, definition), limit, windowMs: seconds * 1_000, scope }
  })
}

function budgetKey(owner: string, definition: BudgetDefinition[number]): string {
  return createHash('sha256')
    .update(`${owner}|${canonicalJson(JSON.parse(JSON.stringify(definition)))}`)
    .digest('base64url')
    .slice(0, KEY_LENGTH)
}
