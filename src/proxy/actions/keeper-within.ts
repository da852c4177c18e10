import type { JsonObject } from '../../base/index.ts'
import type { CredentialRefresher } from '../account-keeper.ts'
import type { AccountAccess } from '../request.ts'

/** The action by which a keeper renews credentials. */
const REFRESH_ACTION = 'refresh_token'

/**
 * The keeper as the steps of an action see it: credentials that are renewed in mid-step come with the stored context, which
 * has nothing of this action yet. While the action is itself the renewal there is nobody to ask for another.
 *
 * @param patch what the steps before have changed of the context
 */
export function scopedRefresher(keeper: CredentialRefresher, action: string, patch: JsonObject): CredentialRefresher {
  const updateContext: CredentialRefresher['updateContext'] = (access, change) => keeper.updateContext(access, change)
  if (action === REFRESH_ACTION) return { refresh: async () => undefined, report: async () => {}, updateContext }
  return {
    async refresh(access, signal) {
      const renewed = await keeper.refresh(access, signal)
      return renewed === undefined ? undefined : withContextPatch(renewed, patch)
    },
    report: (access, sign) => keeper.report(access, sign),
    updateContext,
  }
}

/** The account with a change of its context, merged as the stored one will be: a key given replaces, null removes. */
export function withContextPatch(access: AccountAccess, patch: JsonObject): AccountAccess {
  const merged = Object.entries({ ...access.context, ...patch })
  const kept = merged.filter(([key, value]) => value !== null || !Object.hasOwn(patch, key))
  return { ...access, context: Object.fromEntries(kept) }
}
