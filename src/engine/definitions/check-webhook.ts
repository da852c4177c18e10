import type { Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { signedIdKeys } from './compile-webhook.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { listAnswerProblems } from './webhook-answer.ts'

/**
 * What a `webhook` block lets senders or customers do that its author may not mean. A definition with warnings is valid: the third
 * party may leave no other choice.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findWebhookWarnings({ webhook, credentials }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(webhook)) return []
  return toViolations(
    [
      ...findUnsigned(webhook),
      ...findUnnamedDeliveries(webhook),
      ...findUnconfirmedLookup(webhook, credentials),
      ...findLostAnswers(webhook),
    ],
    path,
  )
}

function findUnsigned({ signature_verification, handle_verification }: JsonObject): ConfigFinding[] {
  if (isVerified(signature_verification)) return []
  const unsigned: ConfigFinding = {
    at: ['webhook', 'signature_verification'],
    description: 'verifies nothing: requests of any sender are accepted',
    rule: 'webhook.unsigned',
  }
  const updatesContext = typeof handle_verification === 'string' && handle_verification.includes('update_context')
  if (!updatesContext) return [unsigned]
  const description =
    'sets update_context without a signature: it takes effect only while an account is being connected or subscribed'
  return [{ at: ['webhook', 'handle_verification'], description, rule: 'webhook.unsigned_context' }, unsigned]
}

/** Nothing tells a repeated delivery from another one with the same content. */
function findUnnamedDeliveries({ dedupe, signature_verification: signature }: JsonObject): ConfigFinding[] {
  const isNamed = isJsonObject(dedupe) && dedupe.keys !== undefined
  const isSigned =
    isJsonObject(signature) && signedIdKeys({ ...signature, format: String(signature.format) }).length > 0
  if (dedupe === false || isNamed || isSigned) return []
  const description =
    'names no id of a delivery: what has the same content within 10 minutes counts as one; name the id in keys, or write false where every request is news'
  return [{ at: ['webhook', 'dedupe'], description, rule: 'webhook.dedupe' }]
}

/** What answers of the handshake lose when they are sent. */
function findLostAnswers({ handle_verification: expression }: JsonObject): ConfigFinding[] {
  if (typeof expression !== 'string') return []
  const at = ['webhook', 'handle_verification']
  return listAnswerProblems(expression).map((description) => ({ at, description, rule: 'webhook.answer' }))
}

/** `any_of` accepts every request when one of its choices verifies nothing. */
function isVerified(signature: Json | undefined): boolean {
  if (!isJsonObject(signature)) return false
  const members = isJsonObject(signature.config) ? signature.config.verifications : undefined
  if (!Array.isArray(members)) return signature.format !== 'none'
  return signature.format === 'any_of' ? members.every(isVerified) : members.some(isVerified)
}

/** Accounts are found by a value that the third party has not confirmed for some way of connecting. */
function findUnconfirmedLookup({ context_lookup }: JsonObject, credentials: Json | undefined): ConfigFinding[] {
  if (!isJsonObject(context_lookup) || !isJsonObject(credentials)) return []
  const ways = isJsonObject(credentials.config) ? { [String(credentials.format)]: credentials } : credentials
  const unconfirmed = Object.entries(ways).flatMap(([name, way]) => {
    const config = isJsonObject(way) && isJsonObject(way.config) ? way.config : {}
    return config.identity === undefined ? [name] : []
  })
  if (unconfirmed.length === 0) return []
  const description = `is a value that nothing confirms for accounts connected by ${unconfirmed.join(', ')} (identity): where accounts of several tenants have it, requests are unrouted`
  return [{ at: ['webhook', 'context_lookup', 'field'], description, rule: 'webhook.unconfirmed_lookup' }]
}
