import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { scope as scopeOption } from '../../../gen/patchbay/v1/access_pb.ts'
import { Effect, effects as effectsOption } from '../../../gen/patchbay/v1/effect_pb.ts'

/** What a call of an operation may do; nothing of that for an operation without side effects. */
export interface Effects {
  /** Does what no other call undoes. */
  readonly destroys: boolean
  /** Sends requests to a third party or to receivers of webhooks. */
  readonly reachesThirdParty: boolean
  /** Calls a third party as the caller says. */
  readonly callsDirectly: boolean
}

/** The effects of an RPC: its options `(patchbay.v1.effects)` in the contract. @throws Error for one that has to state them and does not */
export function effectsOf(method: DescMethod): Effects {
  const effects = getOption(method, effectsOption)
  const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
  if (isSafe !== (effects.length === 0))
    throw new Error(`${method.parent.typeName}/${method.name}: patchbay.v1.effects and its side effects do not agree`)
  return {
    destroys: effects.includes(Effect.DESTROYS),
    reachesThirdParty: effects.includes(Effect.REACHES_THIRD_PARTY) || effects.includes(Effect.CALLS_DIRECTLY),
    callsDirectly: effects.includes(Effect.CALLS_DIRECTLY),
  }
}

/** What daemons report of their runs, many times a minute: the history of a run has it. */
const REPORTS_OF_RUNS = 'daemons:write'

/**
 * Whether a successful call of an RPC has an entry in the audit log: every unary one with side effects, but for calls of a
 * third party as the caller says and reads from a third party, which the request log has, and the reports of daemons.
 */
export function isAudited(method: DescMethod): boolean {
  const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
  const scope = getOption(method, scopeOption)
  if (isSafe || method.methodKind !== 'unary' || scope === '' || scope === REPORTS_OF_RUNS) return false
  const effects = getOption(method, effectsOption)
  if (effects.includes(Effect.CALLS_DIRECTLY)) return false
  // Some change something with a scope that reads: the event of a token that was issued is a record.
  return !scope.endsWith(':read') || effects.includes(Effect.CHANGES) || effects.includes(Effect.DESTROYS)
}
