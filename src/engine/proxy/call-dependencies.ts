import type { Plan } from '../definitions/plan.ts'
import type { CallDependencies, ProxyDependencies } from './dependencies.ts'
import { callSecrets, createRedaction } from './redaction.ts'
import type { AccountAccess } from './request.ts'
import { RequestLine } from './request-line.ts'

/** Size limit of input and result of an expression: `response_path` reads a whole page of a list. */
const EXPRESSION_BYTES_MAX = 5 * 1024 * 1024

/**
 * The dependencies of one call: its expressions are evaluated for its environment, with which the sandbox is shared fairly,
 * and its secrets are redacted.
 */
export function dependenciesForCall(
  deps: ProxyDependencies & Pick<CallDependencies, 'sealer' | 'reserveAnswerBytes'>,
  plan: Plan,
  account: AccountAccess,
): CallDependencies {
  const { environmentId, environmentVariables } = account
  const limits = {
    inputBytesMax: EXPRESSION_BYTES_MAX,
    resultBytesMax: EXPRESSION_BYTES_MAX,
    ...(environmentId === undefined ? {} : { owner: environmentId }),
  }
  return {
    ...deps,
    redaction: createRedaction(plan, account),
    secretsOf: (access) => callSecrets(plan, access),
    environmentVariables,
    requestLine: new RequestLine(),
    owner: environmentId ?? '',
    evaluator: {
      evaluate: (expression, roots, options) => deps.evaluator.evaluate(expression, roots, { ...limits, ...options }),
    },
  }
}
