import type { Violation } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { findClearTextAddresses } from './check-clear-text.ts'
import { findCredentialWarnings } from './check-credentials.ts'
import { findResponseWarnings } from './check-responses.ts'
import { findVersionWarnings } from './check-versions.ts'
import { findWebhookWarnings } from './check-webhook.ts'

/** What a checked config allows that its author may not mean. @param path prefix of the reported fields: `config` */
export function findWarnings(config: JsonObject, path: string, now: Date): readonly Violation[] {
  return [
    ...findVersionWarnings(config, path, now),
    ...findWebhookWarnings(config, path),
    ...findCredentialWarnings(config, path),
    ...findResponseWarnings(config, path),
    ...findClearTextAddresses(config, path),
  ]
}
