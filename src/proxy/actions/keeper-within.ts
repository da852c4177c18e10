import type { JsonObject } from '../../base/index.ts'
import type { AccountKeeper } from '../account-keeper.ts'
import type { AccountAccess } from '../request.ts'

/** The action by which a keeper renews credentials. */
const RENEWAL = 'refresh_token'

/**
 * The keeper as the steps of an action see it: credentials that are renewed in mid-step come with the stored context, which
 * has nothing of this action yet. While the action is itself the renewal there is nobody to ask for another.
 *
 * @param patch what the steps before have changed of the context
 */
export function keeperWithin(keeper: AccountKeeper, action: string, patch: JsonObject): AccountKeeper {
  const updateContext: AccountKeeper['updateContext'] = (access, change) => keeper.updateContext(access, change)
  if (action === RENEWAL) return { renew: async () => undefined, note: async () => {}, updateContext }
  return {
    async renew(access, signal) {
      const renewed = await keeper.renew(access, signal)
      return renewed === undefined ? undefined : withContext(renewed, patch)
    },
    note: (access, sign) => keeper.note(access, sign),
    updateContext,
  }
}

/** The account with a change of its context, merged as the stored one will be: a key given replaces, null removes. */
export function withContext(access: AccountAccess, patch: JsonObject): AccountAccess {
  const merged = Object.entries({ ...access.context, ...patch })
  const kept = merged.filter(([key, value]) => value !== null || !Object.hasOwn(patch, key))
  return { ...access, context: Object.fromEntries(kept) }
}
