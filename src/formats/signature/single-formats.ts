import { formatUnion } from '../format.ts'
import { asymmetric } from './asymmetric.ts'
import { basic } from './basic.ts'
import { bearer } from './bearer.ts'
import { compare } from './compare.ts'
import { hash } from './hash.ts'
import { hmac } from './hmac.ts'
import { jwt } from './jwt.ts'
import { none } from './none.ts'
import type { SignatureFormat } from './signature.ts'
import { standardWebhooks } from './standard-webhooks.ts'

/** The formats that verify by themselves; `any_of` and `all_of` combine them. */
export const SINGLE_SIGNATURE_FORMATS: readonly SignatureFormat[] = [
  hmac,
  hash,
  asymmetric,
  jwt,
  basic,
  bearer,
  compare,
  standardWebhooks,
  none,
]

/** `{format, config}` of one of them. */
export const singleSignatureSchema = formatUnion('SingleSignature', SINGLE_SIGNATURE_FORMATS)
