import type { Json } from '../../../foundation/json/index.ts'
import type { Format } from '../format.ts'
import type { SignedKeys } from './signed-content.ts'
import type { Verify } from './verification.ts'

/** One way of authenticating inbound webhooks. */
export interface SignatureFormat extends Format {
  readonly compile: (config: Json | undefined) => Verify
  /** The signed content of a checked config, for explanations. Absent: the format signs no parts of the request. */
  readonly signed?: (config: Json | undefined) => SignedKeys
}
