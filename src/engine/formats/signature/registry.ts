/**
 * `signature_verification`: how inbound webhooks are authenticated. The registry of its formats.
 *
 * @module
 */
import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { refineWith } from '../schema-types.ts'
import { allOf, anyOf, findInsecure, SINGLE_SIGNATURE_FORMATS } from './combination.ts'
import type { SignatureFormat } from './signature.ts'
import type { Verify } from './verification.ts'

export const SIGNATURE_FORMATS: readonly SignatureFormat[] = [...SINGLE_SIGNATURE_FORMATS, anyOf, allOf]

/** Schema of `signature_verification`. */
export const signatureSchema = formatUnion('SignatureVerification', SIGNATURE_FORMATS).superRefine(
  refineWith(findInsecure, 'signature.forgeable'),
)

/** Compiles a checked `{format, config}`. */
export function compileSignature({ format, config }: FormatChoice): Verify {
  return getFormat(SIGNATURE_FORMATS, format).compile(config)
}
