import { z } from 'zod'
import { isJsonObject, type Json } from '../../base/index.ts'
import { listPlaceholderPaths } from '../../expression/index.ts'
import { type FormatChoice, getFormat } from '../format.ts'
import type { Verify } from './signature.ts'
import { SINGLE_SIGNATURE_FORMATS, singleSignatureSchema } from './single-formats.ts'

/** Config of the formats that combine others. */
export const combinationConfig = z.strictObject({
  verifications: z.array(singleSignatureSchema).min(1).max(8).describe('The verifications.'),
})

/** The behaviour of a checked choice that combines nothing. */
export function compileSingle({ format, config }: FormatChoice): Verify {
  return getFormat(SINGLE_SIGNATURE_FORMATS, format).compile(config)
}

/**
 * A sentence when anyone could make deliveries that pass: a `hash` without a secret, unless `all_of` puts a verification with
 * one beside it. `none` says so itself and is not reported.
 */
export function findInsecure(choice: FormatChoice): string | undefined {
  return isInsecure(choice)
    ? 'accepts a digest that anyone can compute: one of the parts has to be the secret, as a placeholder'
    : undefined
}

function isInsecure({ format, config = null }: FormatChoice): boolean {
  if (!isJsonObject(config)) return false
  const members = membersOf(config.verifications)
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

function membersOf(verifications: Json | undefined): FormatChoice[] {
  if (!Array.isArray(verifications)) return []
  return verifications.flatMap((member: Json) =>
    isJsonObject(member) && typeof member.format === 'string' ? [{ format: member.format, config: member.config }] : [],
  )
}
