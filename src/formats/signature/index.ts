/**
 * Family `signature_verification`: how an inbound webhook is proved genuine. One file per format; this list is the registry.
 *
 * @module
 */
import { familySchema } from '../format.ts'
import { allOf } from './all-of.ts'
import { anyOf } from './any-of.ts'
import type { SignatureFormat } from './signature.ts'
import { SINGLE_SIGNATURE_FORMATS } from './single-formats.ts'

export const SIGNATURE_FORMATS: readonly SignatureFormat[] = [...SINGLE_SIGNATURE_FORMATS, anyOf, allOf]

/** `{format, config}` of the family. */
export const signatureSchema = familySchema('SignatureVerification', SIGNATURE_FORMATS)
