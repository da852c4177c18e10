import { z } from 'zod'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { listPlaceholderPaths } from '../../expressions/template.ts'
import { type FormatChoice, formatUnion, getFormat, withSchema } from '../format.ts'
import { asymmetric } from './asymmetric.ts'
import { clerk, hash, hmac, standardWebhooks } from './digest.ts'
import { jwt } from './jwt.ts'
import { basic, bearer, compare, none } from './shared-token.ts'
import type { SignatureFormat } from './signature.ts'
import { invalid, VALID, type Verify } from './verification.ts'

/** The formats that combine no others; `any_of` and `all_of` combine them. */
export const SINGLE_SIGNATURE_FORMATS: readonly SignatureFormat[] = [
  hmac,
  hash,
  asymmetric,
  jwt,
  basic,
  bearer,
  compare,
  standardWebhooks,
  clerk,
  none,
]

/** `{format, config}` of one of them. */
const singleSignatureSchema = formatUnion('SingleSignature', SINGLE_SIGNATURE_FORMATS)

/** Config of the formats that combine others. */
const combinationConfig = z.strictObject({
  verifications: z.array(singleSignatureSchema).min(1).max(8).describe('The verifications.'),
})

/** Compiles a checked `{format, config}` that combines no others. */
function compileSingle({ format, config }: FormatChoice): Verify {
  return getFormat(SINGLE_SIGNATURE_FORMATS, format).compile(config)
}

/**
 * The problem of a verification that accepts forged requests: a `hash` without a secret, unless `all_of` combines it with
 * a verification that has one. `none` is explicit and not reported.
 */
export function findInsecure(choice: FormatChoice): string | undefined {
  return isInsecure(choice)
    ? 'accepts a digest that anyone can compute: one of the parts has to be the secret, as a placeholder'
    : undefined
}

function isInsecure({ format, config = null }: FormatChoice): boolean {
  if (!isJsonObject(config)) return false
  const members = listMembers({ format, config })
  switch (format) {
    case 'hash':
      return listPlaceholderPaths(config.parts ?? null).length === 0
    case 'any_of':
      return members.some(isInsecure)
    case 'all_of':
      return members.every(isInsecure)
    default:
      return false
  }
}

/** The verifications that a choice combines; none for other formats. */
export function listMembers({ config = null }: FormatChoice): FormatChoice[] {
  const verifications = isJsonObject(config) ? config.verifications : undefined
  if (!Array.isArray(verifications)) return []
  return verifications.flatMap((member: Json) =>
    isJsonObject(member) && typeof member.format === 'string' ? [{ format: member.format, config: member.config }] : [],
  )
}

/** `any_of`: one of several verifications must pass, for example during a rotation of secrets. */
export const anyOf: SignatureFormat = {
  format: 'any_of',
  summary: 'One of the verifications must pass.',
  config: combinationConfig,
  compile: withSchema(combinationConfig, ({ verifications }) => {
    const all = verifications.map(compileSingle)
    return async (request, scope, context) => {
      const reasons: string[] = []
      for (const verify of all) {
        const result = await verify(request, scope, context)
        if (result.kind === 'valid') return result
        reasons.push(result.reason)
      }
      return invalid(reasons.join('; '))
    }
  }),
}

/** `all_of`: all verifications must pass; the first that fails gives the reason. */
export const allOf: SignatureFormat = {
  format: 'all_of',
  summary: 'All of the verifications must pass.',
  config: combinationConfig,
  compile: withSchema(combinationConfig, ({ verifications }) => {
    const all = verifications.map(compileSingle)
    return async (request, scope, context) => {
      for (const verify of all) {
        const result = await verify(request, scope, context)
        if (result.kind === 'invalid') return result
      }
      return VALID
    }
  }),
}
