import { withSchema } from '../format.ts'
import { combinationConfig, compileSingle } from './combination.ts'
import type { SignatureFormat } from './signature.ts'
import { VALID } from './verdict.ts'

/** `all_of`: every one of several verifications must pass; the first that does not gives the reason. */
export const allOf: SignatureFormat = {
  format: 'all_of',
  summary: 'All of the verifications must pass.',
  config: combinationConfig,
  compile: withSchema(combinationConfig, ({ verifications }) => {
    const all = verifications.map(compileSingle)
    return async (delivery, scope, tools) => {
      for (const verify of all) {
        const verdict = await verify(delivery, scope, tools)
        if (verdict.kind === 'refused') return verdict
      }
      return VALID
    }
  }),
}
