import { withSchema } from '../format.ts'
import { combinationConfig, compileSingle } from './combination.ts'
import type { SignatureFormat } from './signature.ts'
import { invalid, VALID } from './verdict.ts'

/** `any_of`: one of several verifications is enough, for example during a change of secrets. */
export const anyOf: SignatureFormat = {
  format: 'any_of',
  summary: 'One of the verifications must pass.',
  config: combinationConfig,
  compile: withSchema(combinationConfig, ({ verifications }) => {
    const all = verifications.map(compileSingle)
    return async (delivery, scope, tools) => {
      const reasons: string[] = []
      for (const verify of all) {
        const verdict = await verify(delivery, scope, tools)
        if (verdict.kind === 'genuine') return VALID
        reasons.push(verdict.why)
      }
      return invalid(reasons.join('; '))
    }
  }),
}
