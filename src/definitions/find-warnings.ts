import type { JsonObject, Violation } from '../base/index.ts'
import { findCredentialWarnings } from './check-credentials.ts'
import { findResponseWarnings } from './check-responses.ts'
import { findWebhookWarnings } from './check-webhook.ts'

/** What a checked config allows that its author may not mean. @param path prefix of the reported fields: `config` */
export function findWarnings(config: JsonObject, path: string): readonly Violation[] {
  return [
    ...findWebhookWarnings(config, path),
    ...findCredentialWarnings(config, path),
    ...findResponseWarnings(config, path),
  ]
}
