import type { Violation } from '../../foundation/base/index.ts'
import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { SUBSCRIPTION_VERBS } from './plan.ts'

const SUBSCRIPTION: DotPath = ['webhook', 'subscription']

/**
 * Semantic problems of `webhook.subscription`: requests without a step that sends one, placeholders that would have no value,
 * one subscription per event without events, a secret of one account for an address that all accounts share.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findSubscriptionProblems(config: JsonObject, path: string): Violation[] {
  const block = isJsonObject(config.webhook) ? config.webhook.subscription : undefined
  if (!isJsonObject(block)) return []
  const findings = [...findSilentActions(block), ...findMissingEvents(block), ...findSharedSecret(block)]
  return toViolations([...findings, ...findValueless(config, block)], path)
}

/** Requests of a subscription that send none. */
function findSilentActions(block: JsonObject): ConfigFinding[] {
  return SUBSCRIPTION_VERBS.flatMap((verb) => {
    const action = block[verb]
    if (!isJsonObject(action)) return []
    const steps: readonly Json[] = Array.isArray(action.steps) ? action.steps : [action]
    if (steps.some((step) => isJsonObject(step) && step.type === 'request')) return []
    const description = 'must have a step that sends a request'
    return [{ at: [...SUBSCRIPTION, verb], description, rule: 'subscription.no_request' }]
  })
}

function findMissingEvents({ one_per_event, events }: JsonObject): ConfigFinding[] {
  if (one_per_event !== true || (Array.isArray(events) && events.length > 0)) return []
  const description = 'needs events: there would be no subscription'
  return [{ at: [...SUBSCRIPTION, 'one_per_event'], description, rule: 'subscription.no_events' }]
}

/** Deliveries to a shared address are verified before their account is known. */
function findSharedSecret({ scope, secret }: JsonObject): ConfigFinding[] {
  if (scope !== 'installation' || secret === undefined) return []
  const description =
    'is a secret of one account, but requests to the address of the installation are verified before their account is known'
  return [{ at: [...SUBSCRIPTION, 'secret'], description, rule: 'subscription.shared_secret' }]
}

/** Placeholders of the webhook block that nothing gives a value. */
function findValueless({ webhook }: JsonObject, block: JsonObject): ConfigFinding[] {
  const given: Readonly<Record<string, boolean>> = {
    secret: block.secret !== undefined,
    event: block.one_per_event === true,
    events: block.events !== undefined,
  }
  const unset = listPlaceholderPaths(webhook ?? null).flatMap(({ root, steps: [name] }) =>
    root === 'subscription' && given[String(name)] === false ? [String(name)] : [],
  )
  const needs: Readonly<Record<string, string>> = { event: 'one_per_event' }
  return [...new Set(unset)].map((name) => ({
    at: SUBSCRIPTION,
    description: `has no ${needs[name] ?? name}, which {{subscription.${name}}} reads`,
    rule: 'subscription.no_value',
  }))
}
