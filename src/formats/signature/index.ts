/**
 * Family `signature_verification`: how an inbound webhook is proved genuine. One file per format; this list is the registry.
 *
 * @module
 */

import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { refineWith } from '../schema-types.ts'
import { allOf, anyOf, findInsecure, SINGLE_SIGNATURE_FORMATS } from './combination.ts'
import type { SignatureFormat, Verify } from './signature.ts'

export const SIGNATURE_FORMATS: readonly SignatureFormat[] = [...SINGLE_SIGNATURE_FORMATS, anyOf, allOf]

/** `{format, config}` of the family. */
export const signatureSchema = formatUnion('SignatureVerification', SIGNATURE_FORMATS).superRefine(
  refineWith(findInsecure, 'signature.forgeable'),
)

/** The behaviour of a checked choice. */
export function compileSignature({ format, config }: FormatChoice): Verify {
  return getFormat(SIGNATURE_FORMATS, format).compile(config)
}
